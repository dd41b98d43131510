#include "peers/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "plan/test_statistics.h"

namespace foreload {
namespace {

using Encoded = std::vector<std::byte>;

PeerCrop some_crop() {
  return {.picture_width = 0x0102, .picture_height = 65'535, .x = 0x0100, .y = 3, .width = 2, .height = 65'532};
}

FetchRequest some_request(std::size_t items = 5) {
  FetchRequest request{.key = {.fingerprint = 0x0123456789abcdef, .validators = 2, .roster = ~0ULL}};
  for (std::size_t i = 0; i < items; ++i) {
    request.items.push_back({.id = i * 0x100000001ULL, .length = 110'000 + (i << 40)});
    if (i % 2 == 1) request.items.back().crop = some_crop();
  }
  return request;
}

PeerCard some_card(const std::string& name = "node-7:9470") {
  return {.host = 7, .learners = 8, .memory = 200_GiB, .disk = 3ULL << 40, .name = name};
}

Hello some_hello() {
  return {.nonce = 0xfeedfacecafebeef, .hosts = 12, .job = "train-42", .card = some_card()};
}

HelloAnswer some_answer(std::size_t cards = 3) {
  HelloAnswer answer{.nonce = 99, .refusal = "of another job"};
  for (std::size_t i = 0; i < cards; ++i) answer.cards.push_back(some_card("node-" + std::to_string(i)));
  return answer;
}

TEST(PeerWireTest, MessagesSurviveTheWayThereAndBack) {
  EXPECT_EQ(parse_fetch_request(encode(some_request())), some_request());
  EXPECT_EQ(parse_fetch_request(encode(some_request(0))), some_request(0));
  EXPECT_EQ(parse_hello(encode(some_hello())), some_hello());
  EXPECT_EQ(parse_hello(encode(Hello())), Hello());
  EXPECT_EQ(parse_hello_answer(encode(some_answer())), some_answer());
  EXPECT_EQ(parse_hello_answer(encode(HelloAnswer())), HelloAnswer());
}

TEST(PeerWireTest, TheLargestMessagesFit) {
  const auto request = encode(some_request(kMostItems));
  EXPECT_LE(request.size(), kMostRequestBytes);
  EXPECT_EQ(parse_fetch_request(request), some_request(kMostItems));
  HelloAnswer answer{.refusal = std::string(kLongestPeerText, 'r')};
  answer.cards.assign(kMostPeerCards, some_card(std::string(kLongestPeerText, 'n')));
  EXPECT_LE(encode(answer).size(), kMostAnswerBytes);
  EXPECT_EQ(parse_hello_answer(encode(answer)), answer);
  EXPECT_LE(kSampleFrameBytes + kPartBytes, kMostAnswerBytes);
}

TEST(PeerWireTest, BytesAreTheSameOnEveryMachine) {
  const auto bytes = encode(FetchRequest{
      .key = {.fingerprint = 1, .validators = 2, .roster = 3},
      .items = {{0x0102, 0x0304, {.picture_width = 0x0506, .picture_height = 7, .width = 0x0201, .height = 1}}}});
  const unsigned char expected[] = {'F', 'O', 'L', 'p', 2, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0,
                                    0,   0,   3,   0,   0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0,
                                    4,   3,   0,   0,   0, 0, 0, 0, 6, 5, 7, 0, 0, 0, 0, 0, 1, 2, 1, 0};
  ASSERT_EQ(bytes.size(), sizeof(expected));
  EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(expected))));
}

TEST(PeerWireTest, EveryTruncationAndEveryTailIsNoMessage) {
  const auto check = [](const Encoded& whole, const auto& parse) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(parse(std::span(whole).first(length))) << length;
    }
    Encoded longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(parse(longer));
  };
  check(encode(some_request()), parse_fetch_request);
  check(encode(some_hello()), parse_hello);
  check(encode(some_answer()), parse_hello_answer);
}

TEST(PeerWireTest, OneKindIsNotTakenForAnother) {
  EXPECT_FALSE(parse_hello(encode(some_answer())));
  EXPECT_FALSE(parse_hello_answer(encode(some_hello())));
  EXPECT_FALSE(parse_fetch_request(encode(some_hello())));
}

TEST(PeerWireTest, AnotherVersionIsNamedWhateverFollows) {
  Encoded bytes = encode(some_hello());
  bytes[4] = std::byte{9};
  bytes.resize(11);
  ASSERT_TRUE(parse_hello(bytes));
  EXPECT_EQ(parse_hello(bytes), Hello{.protocol = 9});
  EXPECT_EQ(parse_fetch_request(bytes), FetchRequest{.protocol = 9});
  EXPECT_EQ(parse_hello_answer(bytes), HelloAnswer{.protocol = 9});
}

TEST(PeerWireTest, CountsBeyondTheBoundsAreRefusedBeforeMemoryIsTaken) {
  Encoded request = encode(some_request(0));
  std::fill(request.end() - 4, request.end(), std::byte{0xff});
  EXPECT_FALSE(parse_fetch_request(request));
  Encoded answer = encode(some_answer(0));
  std::fill(answer.end() - 4, answer.end(), std::byte{0xff});
  EXPECT_FALSE(parse_hello_answer(answer));
}

TEST(PeerWireTest, TextsAreBoundedAndCanBeShown) {
  EXPECT_TRUE(is_peer_text(""));
  EXPECT_TRUE(is_peer_text(std::string(kLongestPeerText, 'x')));
  EXPECT_FALSE(is_peer_text(std::string(kLongestPeerText + 1, 'x')));
  EXPECT_FALSE(is_peer_text("two\nlines"));
  EXPECT_FALSE(is_peer_text(std::string_view("\0", 1)));
  Encoded bytes = encode(some_hello());
  const std::string job = "train-42";
  const auto wanted = std::as_bytes(std::span(job));
  const auto at = std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end());
  ASSERT_NE(at, bytes.end());
  *at = std::byte{0x1b};
  EXPECT_FALSE(parse_hello(bytes));
}

TEST(PeerWireTest, TextsAreCutAndCleanedWhenTheyAreSent) {
  const std::string hostile = "\x1b[31m\n" + std::string(100'000, 'x');
  const auto answer = parse_hello_answer(encode(HelloAnswer{.refusal = hostile, .cards = {PeerCard{.name = hostile}}}));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->refusal, "?[31m?" + std::string(kLongestPeerText - 6, 'x'));
  EXPECT_EQ(answer->cards[0].name, answer->refusal);
}

TEST(PeerWireTest, WhateverIsFlippedTheParserEndsAndItsMessageIsWhatWasSent) {
  std::mt19937_64 random(fresh_seed());
  const std::vector<Encoded> seeds = {encode(some_request()), encode(some_hello()), encode(some_answer())};
  const int rounds = soak() ? 1'000'000 : 100'000;
  for (int round = 0; round < rounds; ++round) {
    Encoded bytes = seeds[random() % seeds.size()];
    for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 << random() % 8);
    }
    const auto same = [&](const auto& parsed) {
      return !parsed || parsed->protocol != kPeerProtocol || encode(*parsed) == bytes;
    };
    ASSERT_TRUE(same(parse_fetch_request(bytes)));
    ASSERT_TRUE(same(parse_hello(bytes)));
    ASSERT_TRUE(same(parse_hello_answer(bytes)));
  }
}

TEST(PeerWireTest, ACropThatDoesNotLieInItsPictureIsNoRequest) {
  const auto taken = [](const PeerCrop& crop) {
    FetchRequest request = some_request(1);
    auto bytes = encode(request);
    const std::uint16_t numbers[] = {crop.picture_width, crop.picture_height, crop.x, crop.y, crop.width, crop.height};
    for (std::size_t i = 0; i < 12; ++i) {
      bytes[bytes.size() - 12 + i] = static_cast<std::byte>(numbers[i / 2] >> 8 * (i % 2));
    }
    const auto parsed = parse_fetch_request(bytes);
    request.items[0].crop = crop;
    EXPECT_TRUE(!parsed || *parsed == request);
    return parsed.has_value();
  };
  EXPECT_TRUE(taken({}));
  EXPECT_TRUE(taken(some_crop()));
  EXPECT_TRUE(taken({.picture_width = 65'535, .picture_height = 65'535, .width = 65'535, .height = 65'535}));
  EXPECT_FALSE(taken({.picture_width = 10, .picture_height = 10})) << "an empty box";
  EXPECT_FALSE(taken({.picture_width = 10, .picture_height = 10, .width = 5}));
  EXPECT_FALSE(taken({.picture_width = 10, .picture_height = 10, .x = 6, .width = 5, .height = 1}));
  EXPECT_FALSE(taken({.picture_width = 10, .picture_height = 10, .y = 65'535, .width = 5, .height = 65'535}));
  EXPECT_FALSE(taken({.width = 1, .height = 1})) << "no picture";
  EXPECT_FALSE(taken({.x = 1}));
}

TEST(SampleFrameTest, FramesSurviveTheWayThereAndBack) {
  const auto there_and_back = [](const SampleFrame& frame, Bytes part) {
    EXPECT_EQ(parse_sample_frame(encode(frame), part), frame);
  };
  there_and_back({.index = 7}, 0);
  there_and_back({.index = 7, .result = PeerResult::kHere, .length = 110'000, .hash = ~0ULL}, 110'000);
  there_and_back({.result = PeerResult::kHere, .length = kPartBytes}, kPartBytes);
  there_and_back({.result = PeerResult::kHere, .length = kPartBytes + 1}, kPartBytes);
  there_and_back({.result = PeerResult::kHere, .length = kPartBytes + 1, .offset = kPartBytes}, 1);
  there_and_back({.result = PeerResult::kHere, .hash = 5}, 0);  // a sample may be empty
  there_and_back({.index = 7, .result = PeerResult::kHere, .is_cut = true, .length = 50'000, .hash = 1}, 50'000);
}

TEST(SampleFrameTest, APartOfAnotherLengthOrAtAnotherPlaceIsRefused) {
  const auto refused = [](const SampleFrame& frame, Bytes part) { return !parse_sample_frame(encode(frame), part); };
  EXPECT_TRUE(refused({.result = PeerResult::kHere, .length = 100}, 99));
  EXPECT_TRUE(refused({.result = PeerResult::kHere, .length = 100}, 101));
  EXPECT_TRUE(refused({.result = PeerResult::kHere, .length = 100, .offset = 50}, 50));
  EXPECT_TRUE(refused({.result = PeerResult::kHere, .length = kPartBytes, .offset = kPartBytes}, 0));
  EXPECT_TRUE(
      refused({.result = PeerResult::kHere, .length = kPartBytes, .offset = ~0ULL - kPartBytes + 1}, kPartBytes));
  EXPECT_TRUE(refused({.result = PeerResult::kHere, .length = ~0ULL, .offset = 0}, ~0ULL));
  EXPECT_TRUE(refused({.result = PeerResult::kRefused}, 0));
  EXPECT_TRUE(refused({.result = PeerResult::kAbsent, .length = 1}, 0));
  EXPECT_TRUE(refused({.result = PeerResult::kAbsent}, 1));
  EXPECT_TRUE(refused({.result = PeerResult::kAbsent, .is_cut = true}, 0));
  EXPECT_TRUE(refused({.result = PeerResult::kHere, .is_cut = true}, 0)) << "nothing is not a part of anything";
  auto other = encode(SampleFrame{.result = PeerResult::kHere, .is_cut = true, .length = 5});
  other[5] = std::byte{2};
  EXPECT_FALSE(parse_sample_frame(other, 5)) << "neither whole nor cut";
  other[5] = std::byte{1};
  other[6] = std::byte{1};
  EXPECT_FALSE(parse_sample_frame(other, 5));
}

}  // namespace
}  // namespace foreload
