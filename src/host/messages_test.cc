#include "host/messages.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace foreload {
namespace {

TEST(MessagesTest, ComeBackAsTheyWereSent) {
  const HostRequest asked{.kind = HostRequest::Kind::kFetch, .index = 7, .budget = 1_GiB, .object = 0x12345};
  const auto request = parse_request(encode(asked));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->kind, asked.kind);
  EXPECT_EQ(request->index, 7u);
  EXPECT_EQ(request->budget, 1_GiB);
  EXPECT_EQ(request->object, 0x12345u);
  const auto reply = parse_reply(encode(HostReply{.kind = HostReply::Kind::kBudget, .budget = 5}));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->kind, HostReply::Kind::kBudget);
  EXPECT_EQ(reply->budget, 5u);
}

TEST(MessagesTest, AnotherVersionIsNamedWhateverFollows) {
  const auto request = parse_request(encode(HostRequest{.protocol = 9}));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->protocol, 9);
  std::vector<std::byte> longer(100);
  const ReplyBytes reply = encode(HostReply{.protocol = 9});
  std::copy(reply.begin(), reply.end(), longer.begin());
  ASSERT_TRUE(parse_reply(longer));
  EXPECT_EQ(parse_reply(longer)->kind, HostReply::Kind::kProtocol);
  EXPECT_EQ(parse_reply(longer)->protocol, 9);
}

TEST(MessagesTest, AnythingElseIsNothing) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const RequestBytes good = encode(HostRequest{});
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(parse_request(std::span(good).first(length))) << length;
  }
  RequestBytes unknown = good;
  unknown[6] = std::byte{99};
  EXPECT_FALSE(parse_request(unknown));
  EXPECT_FALSE(parse_reply(good));
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::byte> bytes(random() % 100);
    for (std::byte& byte : bytes) byte = std::byte(random());
    EXPECT_FALSE(parse_request(bytes));
    EXPECT_FALSE(parse_reply(bytes));
  }
}

}  // namespace
}  // namespace foreload
