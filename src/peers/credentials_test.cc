#include "peers/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/files.h"
#include "base/test_folder.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

mode_t mode_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

// Writes them as make_credentials would.
void store(const TestFolder& folder, const PeerCredentials& credentials) {
  folder.write("ca.pem", credentials.ca);
  folder.write("agent.pem", credentials.certificate);
  folder.write("agent.key", credentials.key);
  ASSERT_EQ(::chmod(folder.path("agent.key").c_str(), 0600), 0);
}

PeerCredentials fresh(const CredentialTerms& terms = {}) {
  auto made = new_credentials(std::span(&terms, 1));
  EXPECT_TRUE(made);
  return std::move(made->front());
}

std::string refusal(const TestFolder& folder) {
  const auto loaded = load_credentials(folder.path());
  return loaded ? "" : loaded.error().message;
}

TEST(CredentialsTest, WhatIsMadeCanBeLoadedAndIsTheOwnersOnly) {
  const TestFolder folder;
  const std::string path = folder.path("job");
  ASSERT_TRUE(make_credentials(path));
  EXPECT_EQ(mode_of(path), 0700u);
  EXPECT_EQ(mode_of(path + "/agent.key"), 0600u);
  const auto loaded = load_credentials(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_NE(loaded->ca, loaded->certificate);
  // The key of the authority is nowhere.
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    const auto text = read_whole_file(file.path().string(), 64_KiB);
    ASSERT_TRUE(text);
    EXPECT_EQ(text->find("PRIVATE KEY") != std::string::npos, file.path().filename() == "agent.key");
  }
}

TEST(CredentialsTest, NothingIsOverwritten) {
  for (const char* name : {"ca.pem", "agent.pem", "agent.key"}) {
    const TestFolder folder;
    folder.write(name, "mine");
    const Status made = make_credentials(folder.path());
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find(name), std::string::npos) << made.error().message;
    EXPECT_EQ(*read_whole_file(folder.path(name), 64_KiB), "mine");
    std::size_t files = 0;  // and nothing else is left there
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder.path())) ++files;
    EXPECT_EQ(files, 1u);
  }
}

TEST(CredentialsTest, AKeyThatOthersMayReadIsRefusedWithWhatToDo) {
  const TestFolder folder;
  store(folder, fresh());
  for (const mode_t mode : {0644u, 0604u, 0660u}) {
    ASSERT_EQ(::chmod(folder.path("agent.key").c_str(), mode), 0);
    EXPECT_NE(refusal(folder).find("chmod 600"), std::string::npos) << refusal(folder);
  }
  ASSERT_EQ(::chmod(folder.path("agent.key").c_str(), 0440), 0);  // as Kubernetes mounts secrets for a group
  EXPECT_EQ(refusal(folder), "");
}

TEST(CredentialsTest, DatesAreCheckedAtTheStart) {
  const TestFolder expired;
  store(expired, fresh({.age = 2h, .valid = -1h}));
  EXPECT_NE(refusal(expired).find("has expired"), std::string::npos) << refusal(expired);
  const TestFolder early;
  store(early, fresh({.age = -1h, .valid = 2h}));
  EXPECT_NE(refusal(early).find("not valid before"), std::string::npos) << refusal(early);
  const TestFolder skewed;  // made by a host whose clock is 50 minutes ahead
  store(skewed, fresh({.age = 10min, .valid = 24h}));
  EXPECT_EQ(refusal(skewed), "");
}

TEST(CredentialsTest, WhatDoesNotBelongTogetherIsRefused) {
  const PeerCredentials one = fresh();
  const PeerCredentials other = fresh();
  const TestFolder jobs;
  store(jobs, {.ca = one.ca, .certificate = other.certificate, .key = other.key});
  EXPECT_NE(refusal(jobs).find("was not signed by"), std::string::npos) << refusal(jobs);
  const TestFolder keys;
  store(keys, {.ca = one.ca, .certificate = one.certificate, .key = other.key});
  EXPECT_NE(refusal(keys).find("is not the key of"), std::string::npos) << refusal(keys);
  const TestFolder names;
  store(names, fresh({.name = "somebody-else"}));
  EXPECT_NE(refusal(names).find("foreload-peer"), std::string::npos) << refusal(names);
}

TEST(CredentialsTest, FilesThatAreMissingEmptyLongOrNoneAreErrorsWithTheirName) {
  const PeerCredentials good = fresh();
  for (const char* name : {"ca.pem", "agent.pem", "agent.key"}) {
    const TestFolder folder;
    store(folder, good);
    for (const std::string& content : {std::string(), std::string("nonsense"), std::string(1 << 20, 'x')}) {
      folder.write(name, content);
      EXPECT_NE(refusal(folder).find(name), std::string::npos) << refusal(folder);
    }
    std::filesystem::remove(folder.path(name));
    EXPECT_NE(refusal(folder).find(name), std::string::npos) << refusal(folder);
    ASSERT_EQ(::mkfifo(folder.path(name).c_str(), 0600), 0);  // is not waited for
    EXPECT_NE(refusal(folder).find(name), std::string::npos) << refusal(folder);
  }
}

}  // namespace
}  // namespace foreload
