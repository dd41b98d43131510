// Datasets behind URLs, against a server in this process. Whole programs are judged by tests/remote_test.py.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "source/source_testing.h"
#include "store/http_server_testing.h"

namespace foreload {
namespace {

using Objects = std::map<std::string, std::string>;  // by path: "/bucket/key"

std::string listing(const Objects& objects, const std::string& bucket) {
  std::string xml = "<ListBucketResult><IsTruncated>false</IsTruncated>";
  for (const auto& [path, content] : objects) {
    if (path.compare(0, bucket.size(), bucket) != 0) continue;
    xml += fmt::format("<Contents><Key>{}</Key><ETag>&quot;v1&quot;</ETag><Size>{}</Size></Contents>",
                       path.substr(bucket.size()), content.size());
  }
  return xml + "</ListBucketResult>";
}

TestReply answer(const TestRequest& request, const Objects& objects) {
  if (request.target.find("list-type=2") != std::string::npos) {
    return {.bytes = http_reply(200, "", listing(objects, "/bucket/"))};
  }
  const auto found = objects.find(request.target);
  if (found == objects.end()) return {.bytes = http_reply(404, "", "")};
  if (request.method == "GET") return {.bytes = object_reply(request, found->second)};
  return {.bytes = fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"v1\"\r\n\r\n", found->second.size())};
}

class RemoteSourceTest : public testing::Test {
 protected:
  RemoteSourceTest() {
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL_S3"}) {
      unsetenv(name);
    }
    setenv("HOME", folder_.path().c_str(), 1);
    setenv("AWS_ENDPOINT_URL", server_.url("").c_str(), 1);
  }
  Opening open(const std::string& uri) const {
    SourceOptions options;
    options.datasets = {uri};
    options.index_folder = folder_.path("index");
    return open_with(std::move(options));
  }

  // Of the only index file: another one when it was written again.
  ino_t index_inode() const {
    struct stat status {};
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("index"))) {
      EXPECT_EQ(stat(entry.path().c_str(), &status), 0);
    }
    return status.st_ino;
  }

  const TestFolder folder_;
  Objects objects_;
  std::atomic<unsigned> lists_{0};
  TestServer server_{[this](const TestRequest& request) {
    if (request.target.find("list-type=2") != std::string::npos) ++lists_;
    return answer(request, objects_);
  }};
};

TEST_F(RemoteSourceTest, ShardsOfAServerAreTheLocalOnes) {
  for (int shard = 0; shard < 20; ++shard) {
    std::string tar;
    for (int i = 0; i < 5; ++i) {
      tar += tar_entry(fmt::format("{}/{}.jpg", shard % 4, shard * 5 + i), std::string(100 + i, 'x'));
    }
    const std::string name = fmt::format("t-{:02}.tar", shard);
    objects_["/bucket/" + name] = tar + tar_end();
    folder_.write(name, tar + tar_end());
  }
  const Opening local = open(folder_.path("t-{00..19}.tar"));
  ASSERT_TRUE(local.result.ok());
  for (const std::string& uri : {server_.url("/bucket/t-{00..19}.tar"), std::string("s3://bucket/t-*.tar")}) {
    const Opening remote = open(uri);
    ASSERT_TRUE(remote.result.ok()) << remote.warnings.back();
    EXPECT_EQ(keys_of(remote.source()), keys_of(local.source()));
    EXPECT_EQ(labels_of(remote.source()), labels_of(local.source()));
    EXPECT_EQ(remote.source().fingerprint(), local.source().fingerprint());
    const Extent extent = remote.source().locate(7);
    EXPECT_NE(extent.store, nullptr);
    EXPECT_EQ(extent.offset, local.source().locate(7).offset);
    EXPECT_EQ(extent.stamp.size, local.source().locate(7).stamp.size);
    const Opening again = open(uri);
    EXPECT_EQ(again.progress_calls, 0u) << "its index is known";
  }
}

TEST_F(RemoteSourceTest, ObjectsOfABucketAreTheFolder) {
  for (const char* name : {"b/2.jpg", "b/10.jpg", "a/x.jpg", "a/sub/y.png", "c/.hidden.jpg", "notes.txt"}) {
    objects_["/bucket/set/" + std::string(name)] = name;
    folder_.write("set/" + std::string(name), name);
  }
  const Opening local = open(folder_.path("set"));
  const Opening remote = open("s3://bucket/set/");
  ASSERT_TRUE(remote.result.ok()) << remote.warnings.back();
  EXPECT_EQ(keys_of(remote.source()), keys_of(local.source()));
  EXPECT_EQ(remote.source().fingerprint(), local.source().fingerprint());
  EXPECT_EQ(remote.source().locate(0).path, "a/x.jpg");
}

TEST_F(RemoteSourceTest, AnOpenListsOnceAndKeepsAnIndexThatIsRight) {
  for (const char* name : {"a/1.jpg", "b/2.jpg"}) objects_["/bucket/set/" + std::string(name)] = name;
  ASSERT_TRUE(open("s3://bucket/set/").result.ok());
  EXPECT_EQ(lists_, 1u) << "nothing is known";
  const auto written = index_inode();
  EXPECT_TRUE(open("s3://bucket/set/").warnings.empty());
  EXPECT_EQ(lists_, 2u);
  EXPECT_EQ(index_inode(), written);
  objects_["/bucket/set/b/2.jpg"] = "another length";
  EXPECT_TRUE(open("s3://bucket/set/").warned_of("1 sample changed"));
  EXPECT_EQ(lists_, 3u) << "the listing that showed the change is the new index";
  EXPECT_NE(index_inode(), written);
}

}  // namespace
}  // namespace foreload
