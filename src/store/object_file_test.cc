#include "store/object_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/http_server_testing.h"

namespace foreload {
namespace {

std::string content_of(std::size_t size) {
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 2654435761u >> 13);
  return content;
}

std::string read(ObjectFile& file, Bytes offset, std::size_t size) {
  std::string text(size, '\0');
  const auto got = file.read_at(offset, std::as_writable_bytes(std::span(text)));
  return got ? text.substr(0, *got) : "error: " + got.error().message;
}

// A server with one object, and what was asked of it.
struct ObjectServer {
  explicit ObjectServer(std::string bytes) : content(std::move(bytes)) {}
  const std::string content;
  std::vector<std::pair<Bytes, Bytes>> ranges;  // by one client
  TestServer server{[this](const TestRequest& request) {
    const auto range = request.range(content.size());
    ranges.emplace_back(range.first, range.second - range.first + 1);
    return TestReply{.bytes = object_reply(request, content)};
  }};
  const TestStore store{server.url()};
  HttpClient client;
};

TEST(ObjectFileTest, AnyOrderOfReadsGivesTheObjectsBytes) {
  ObjectServer object(content_of(1'500'000));
  auto file = ObjectFile::open(object.store, object.client, "x");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->stamp().size, 1'500'000u);
  for (const Bytes offset : {0, 512, 600'000, 600'100, 599'000, 1'499'900, 0, 1'000'000, 1'499'999}) {
    EXPECT_EQ(read(*file, offset, 700), object.content.substr(offset, 700)) << offset;
  }
  EXPECT_EQ(read(*file, 1'500'000, 10), "");
  EXPECT_EQ(read(*file, 100'000, 900'000), object.content.substr(100'000, 900'000)) << "more than a window";
}

TEST(ObjectFileTest, LargeGapsAreSkippedAndSmallOnesReadThrough) {
  ObjectServer object(content_of(10'000'000));
  auto file = ObjectFile::open(object.store, object.client, "x");
  ASSERT_TRUE(file.ok());
  for (Bytes offset = 0; offset < 10'000'000; offset += 200'000) read(*file, offset, 512);
  EXPECT_LE(object.ranges.size(), 51u);
  Bytes asked = 0;
  for (const auto& [offset, length] : object.ranges) asked += length;
  EXPECT_LT(asked, 700'000u) << "of 10 MB";
  object.ranges.clear();
  auto again = ObjectFile::open(object.store, object.client, "x");
  for (Bytes offset = 0; offset < 10'000'000; offset += 5'000) read(*again, offset, 512);
  EXPECT_LE(object.ranges.size(), 45u) << "2,000 reads share windows";
}

TEST(ObjectFileTest, AChangedObjectIsNoticed) {
  const std::string content = content_of(1'000'000);
  TestServer server([&](const TestRequest& request) {
    return TestReply{.bytes = object_reply(request, content, request.number < 3 ? "\"v1\"" : "\"v2\"")};
  });
  const TestStore store(server.url());
  HttpClient client;
  auto file = ObjectFile::open(store, client, "x");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(read(*file, 300'000, 10), content.substr(300'000, 10));
  EXPECT_NE(read(*file, 900'000, 10).find("was changed while it was read"), std::string::npos);
}

TEST(ObjectFileTest, LiesAreErrors) {
  const std::string content = content_of(100'000);
  std::string reply;
  TestServer server([&](const TestRequest&) { return TestReply{.bytes = reply}; });
  const TestStore store(server.url());
  HttpClient client;
  const auto error = [&](Bytes offset, Bytes length) {
    const auto part = read_part(store, client, "x", offset, length);
    return part ? "" : part.error().message;
  };
  const auto ranged = [&](const std::string& range, std::size_t size) {
    reply = http_reply(206, "Content-Range: " + range + "\r\n", content.substr(0, size));
  };
  ranged("bytes 0-99/100000", 100);
  EXPECT_EQ(error(0, 100), "");
  EXPECT_NE(error(1, 100), "") << "another beginning";
  EXPECT_NE(error(0, 200), "") << "fewer bytes than there are";
  EXPECT_NE(error(0, 50), "") << "more than asked for";
  for (const char* range :
       {"", "bytes */100000", "bytes 0-99/*", "bytes 99-0/100000", "bytes 0-99/50", "lines 0-99/100"}) {
    ranged(range, 100);
    EXPECT_NE(error(0, 100), "") << range;
  }
  ranged("bytes 0-99/100000", 99);
  EXPECT_NE(error(0, 100).find("99 bytes where it promised 100"), std::string::npos);
  reply = http_reply(200, "", content.substr(0, 60));
  EXPECT_EQ(error(0, 100), "") << "the whole object is what was asked for";
  EXPECT_NE(error(0, 50).find("ranges"), std::string::npos);
  EXPECT_NE(error(10, 100).find("ranges"), std::string::npos);
  reply = http_reply(416, "Content-Range: bytes */0\r\n", "");
  EXPECT_EQ(error(0, 100), "") << "an empty object has no ranges";
  EXPECT_NE(error(10, 100), "");
  reply = http_reply(416, "Content-Range: bytes */100000\r\n", "");
  EXPECT_NE(error(0, 100).find("object of 100000 bytes"), std::string::npos);
  reply = http_reply(416, "", "");
  EXPECT_NE(error(0, 100).find("416"), std::string::npos) << "nobody says that it is empty";
  reply = http_reply(404, "", "");
  EXPECT_EQ(read_part(store, client, "x", 0, 1).error().code, Code::kNotFound);
}

TEST(ObjectFileTest, AWholeObjectIsReadUpToItsLimit) {
  ObjectServer object(content_of(20'000'000));
  EXPECT_EQ(*read_whole_object(object.store, object.client, "x", 20'000'000), object.content);
  const auto refused = read_whole_object(object.store, object.client, "x", 19'999'999);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("longer than"), std::string::npos);
}

TEST(ObjectFileTest, ARefusedRangeMeansEmptyOnlyIfTheHeadSaysSo) {
  for (const int length : {0, 1}) {
    TestServer server([&](const TestRequest& request) {
      const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
      return TestReply{.bytes = request.method == "HEAD" ? head : http_reply(416, "", "<Error/>")};
    });
    const TestStore store(server.url());
    HttpClient client;
    EXPECT_EQ(read_part(store, client, "x", 0, 10).ok(), length == 0);
  }
}

TEST(ObjectFileTest, AStampNeedsNoHead) {
  for (const std::string head : {"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"}) {
    TestServer server([&](const TestRequest& request) {
      return TestReply{.bytes = request.method == "HEAD" ? head : object_reply(request, content_of(5000))};
    });
    const TestStore store(server.url());
    HttpClient client;
    const auto stamp = stamp_of_object(store, client, "x");
    ASSERT_TRUE(stamp.ok()) << stamp.error().message;
    EXPECT_EQ(stamp->size, 5000u);
    EXPECT_EQ(stamp->mtime_ns, validator_of("v1"));
  }
}

}  // namespace
}  // namespace foreload
