// Peers that die, stop and come back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "base/test_folder.h"
#include "peers/grpc_testing.h"
#include "peers/peers_grpc.h"
#include "probe/child.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

// A server in a process of its own, which can be stopped and killed: this program, running one test.
constexpr const char* kChildAddress = "FORELOAD_TEST_PEER_ADDRESS";
constexpr const char* kChildFolder = "FORELOAD_TEST_PEER_FOLDER";
constexpr const char* kChildNonce = "FORELOAD_TEST_PEER_NONCE";
constexpr std::size_t kChildSamples = 400;

TEST(GrpcChildTest, DISABLED_ServesUntilItsInputEnds) {
  TestShelf shelf;
  for (SampleId id = 0; id < kChildSamples; ++id) shelf.put(id, 10'000);
  shelf.before_take = [](SampleId) { std::this_thread::sleep_for(5ms); };
  const auto credentials = load_credentials(std::getenv(kChildFolder));
  ASSERT_TRUE(credentials);
  const auto server = GrpcServer::listen({.address = std::getenv(kChildAddress), .credentials = *credentials}, shelf,
                                         welcome(std::strtoull(std::getenv(kChildNonce), nullptr, 10)));
  ASSERT_TRUE(server) << server.error().message;
  std::printf("\nserving %s\n", (*server)->address().c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
}

class PeerProcess {
 public:
  PeerProcess(const std::string& folder, const std::string& address, std::uint64_t nonce) {
    ::setenv(kChildFolder, folder.c_str(), 1);
    ::setenv(kChildAddress, address.c_str(), 1);
    ::setenv(kChildNonce, std::to_string(nonce).c_str(), 1);
    auto child = Child::start({"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=GrpcChildTest.*"});
    EXPECT_TRUE(child);
    child_.emplace(std::move(*child));
    const Time limit = now() + kPlenty;
    while (address_.empty() && now() < limit) {
      const auto line = child_->read_line(limit);
      if (!line) break;
      if (line->rfind("serving ", 0) == 0) address_ = line->substr(8);
    }
    EXPECT_FALSE(address_.empty());
  }
  void send(int signal) { ASSERT_EQ(::kill(child_->id(), signal), 0); }
  const std::string& address() const { return address_; }

 private:
  std::optional<Child> child_;
  std::string address_;
};

// Until one sample comes; false: none does.
bool comes_back(GrpcPeers& peers) {
  const Time limit = now() + 2 * kPlenty;
  Wanted one(0, 1, 10'000);
  while (now() < limit) {
    one.fetch_and_wait(peers, now() + 20s);
    if (one.all(PeerResult::kHere)) return true;
    one.again();
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(GrpcProcessTest, AServerThatIsKilledAndStartedAgainIsUsedAgain) {
  const TestFolder folder;
  ASSERT_TRUE(make_credentials(folder.path("job")));
  const auto credentials = load_credentials(folder.path("job"));
  ASSERT_TRUE(credentials);
  std::optional<PeerProcess> process(std::in_place, folder.path("job"), "127.0.0.1:0", 1);
  const std::string address = process->address();
  const auto peers = peers_at(address, *credentials);
  ASSERT_TRUE(peers->greet(0, now() + kPlenty));
  Wanted wanted(0, kChildSamples, 10'000);
  wanted.fetch(*peers);
  wanted.wait(*peers, 1);
  process->send(SIGKILL);  // in the middle of the stream
  wanted.wait(*peers, kChildSamples);
  EXPECT_EQ(wanted.count(PeerResult::kHere) + wanted.count(PeerResult::kUnreachable), kChildSamples);
  EXPECT_GT(wanted.count(PeerResult::kUnreachable), 0u);
  Wanted next(0, 10, 10'000);
  next.fetch_and_wait(*peers);
  EXPECT_TRUE(next.all(PeerResult::kUnreachable));
  process.reset();
  process.emplace(folder.path("job"), address, 2);
  const auto answer = peers->greet(0, now() + kPlenty);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->nonce, 2u);
  next.again();
  next.fetch_and_wait(*peers);  // at once: its nonce is new
  EXPECT_TRUE(next.all(PeerResult::kHere));
}

TEST(GrpcProcessTest, AServerThatIsStoppedCostsOneDeadlineAndIsUsedAgainWhenItGoesOn) {
  const TestFolder folder;
  ASSERT_TRUE(make_credentials(folder.path("job")));
  const auto credentials = load_credentials(folder.path("job"));
  ASSERT_TRUE(credentials);
  PeerProcess process(folder.path("job"), "127.0.0.1:0", 1);
  const auto peers = peers_at(process.address(), *credentials);
  ASSERT_TRUE(comes_back(*peers));
  process.send(SIGSTOP);
  Wanted wanted(0, 50, 10'000);
  wanted.fetch_and_wait(*peers, now() + 500ms);
  EXPECT_TRUE(wanted.all(PeerResult::kUnreachable));
  Wanted next(0, 50, 10'000);
  next.fetch(*peers, now() + 24h);
  next.wait(*peers, 50);
  EXPECT_TRUE(next.all(PeerResult::kUnreachable));
  process.send(SIGCONT);
  EXPECT_TRUE(comes_back(*peers));
}

TEST(GrpcProcessTest, APeerThatSaysHelloByItselfIsUsedAgain) {
  TestShelf shelf;
  shelf.put(0, 10'000);
  const auto credentials = job_credentials().front();
  auto server = serve(shelf, credentials);
  const std::string address = server->address();
  server.reset();
  const auto peers = peers_at(address, credentials);
  Wanted wanted(0, 1, 10'000);
  wanted.fetch_and_wait(*peers);
  EXPECT_TRUE(wanted.all(PeerResult::kUnreachable));
  server = serve(shelf, credentials, address);
  peers->greeted(0, 2);
  EXPECT_TRUE(comes_back(*peers));
}

}  // namespace
}  // namespace foreload
