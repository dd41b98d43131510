#include "peers/answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/hash.h"
#include "plan/test_statistics.h"

namespace foreload {
namespace {

using Message = std::vector<std::byte>;

Message content(std::size_t length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Message bytes(length);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Message message(const SampleFrame& frame, std::span<const std::byte> part) {
  const auto head = encode(frame);
  Message bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

// The messages that bring a sample.
std::vector<Message> messages(std::uint32_t index, const Message& sample, bool is_cut = false) {
  SampleFrame frame{.index = index,
                    .result = PeerResult::kHere,
                    .is_cut = is_cut,
                    .length = sample.size(),
                    .hash = hash_bytes(sample)};
  std::vector<Message> all;
  do {
    const auto part = std::span(sample).subspan(frame.offset, std::min(kPartBytes, sample.size() - frame.offset));
    all.push_back(message(frame, part));
    frame.offset += part.size();
  } while (frame.offset < sample.size());
  return all;
}

const std::vector<Message>& three_samples() {
  static const std::vector<Message> samples{content(100, 1), content(0, 2), content(5 * kPartBytes / 2, 3)};
  return samples;
}

// Three wants of 100, 0 and 2.5 MiB, and what came of them.
struct Asked {
  const std::vector<Message>& samples = three_samples();
  std::vector<Message> memory{Message(100), Message(0), Message(5 * kPartBytes / 2)};
  FetchAnswer answer{wants()};
  std::vector<PeerEnd> ends{};

  std::vector<PeerWant> wants() {
    std::vector<PeerWant> all;
    for (std::size_t i = 0; i < memory.size(); ++i) all.push_back({.id = 10 + i, .into = memory[i], .token = 20 + i});
    all[2].crop = {.picture_width = 500, .picture_height = 375, .width = 100, .height = 100};
    return all;
  }
  bool take(const Message& bytes, std::size_t cut = 0) {
    const std::array<std::span<const std::byte>, 3> pieces{std::span(bytes).first(cut), std::span<const std::byte>(),
                                                           std::span(bytes).subspan(cut)};
    return answer.take(pieces, ends);
  }
  bool take_all(const std::vector<Message>& all) {
    return std::ranges::all_of(all, [this](const Message& bytes) { return take(bytes, bytes.size() / 3); });
  }
  // By token; nothing ended twice.
  std::map<std::uint64_t, PeerResult> results() const {
    std::map<std::uint64_t, PeerResult> all;
    for (const PeerEnd& end : ends) EXPECT_TRUE(all.emplace(end.token, end.result).second) << end.token;
    return all;
  }
};

using Results = std::map<std::uint64_t, PeerResult>;

TEST(FetchAnswerTest, SamplesComeInAnyOrderAndLongOnesInParts) {
  Asked asked;
  EXPECT_TRUE(asked.take_all(messages(2, asked.samples[2])));
  EXPECT_TRUE(asked.take_all(messages(0, asked.samples[0])));
  EXPECT_FALSE(asked.answer.complete());
  EXPECT_TRUE(asked.take_all(messages(1, asked.samples[1])));
  EXPECT_TRUE(asked.answer.complete());
  EXPECT_EQ(asked.memory, asked.samples);
  EXPECT_EQ(asked.results(), (Results{{20, PeerResult::kHere}, {21, PeerResult::kHere}, {22, PeerResult::kHere}}));
}

TEST(FetchAnswerTest, WhatIsAbsentOrDoesNotComeEndsSo) {
  Asked asked;
  EXPECT_TRUE(asked.take(message({.index = 2}, {})));
  asked.answer.end(PeerResult::kUnreachable, asked.ends);
  asked.answer.end(PeerResult::kWrong, asked.ends);
  EXPECT_EQ(asked.results(),
            (Results{{20, PeerResult::kUnreachable}, {21, PeerResult::kUnreachable}, {22, PeerResult::kAbsent}}));
}

TEST(FetchAnswerTest, AWrongHashOrLengthHarmsOnlyItsSample) {
  Asked asked;
  auto damaged = messages(0, asked.samples[0]);
  damaged[0].back() ^= std::byte{1};
  EXPECT_TRUE(asked.take_all(damaged));
  EXPECT_TRUE(asked.take_all(messages(1, content(3 * kPartBytes, 4))));
  EXPECT_TRUE(asked.take_all(messages(2, asked.samples[2])));
  EXPECT_TRUE(asked.answer.complete());
  EXPECT_EQ(asked.answer.wrong(), 2u);
  EXPECT_EQ(asked.results(), (Results{{20, PeerResult::kWrong}, {21, PeerResult::kWrong}, {22, PeerResult::kHere}}));
  EXPECT_EQ(asked.memory[2], asked.samples[2]);
}

TEST(FetchAnswerTest, ACutComesInTheSamplesPlaceWhereOneIsWanted) {
  const Message small = content(kPartBytes + 5, 6);
  Asked asked;
  EXPECT_TRUE(asked.take_all(messages(2, small, true)));
  ASSERT_EQ(asked.ends.size(), 1u);
  EXPECT_EQ(asked.ends[0].result, PeerResult::kHere);
  EXPECT_EQ(asked.ends[0].cut, small.size());
  EXPECT_EQ(asked.answer.bytes(), small.size()) << "what crossed the network";
  EXPECT_TRUE(std::ranges::equal(std::span(asked.memory[2]).first(small.size()), small));
  EXPECT_TRUE(std::ranges::all_of(std::span(asked.memory[2]).subspan(small.size()),
                                  [](std::byte b) { return b == std::byte{0}; }));
}

TEST(FetchAnswerTest, ACutThatNobodyWantsOrThatIsNotSmallerOrDamagedIsWrong) {
  Asked asked;
  EXPECT_TRUE(asked.take_all(messages(0, content(50, 7), true))) << "of a sample that is wanted whole";
  EXPECT_TRUE(asked.take_all(messages(2, asked.samples[2], true))) << "as long as the sample";
  Asked damaged;
  auto bytes = messages(2, content(1000, 8), true);
  bytes[0].back() ^= std::byte{1};
  EXPECT_TRUE(damaged.take_all(bytes));
  Asked confused;
  EXPECT_TRUE(confused.take_all(messages(2, content(1000, 8), false))) << "a short sample is not a cut";
  for (const Asked* each : {&asked, &damaged, &confused}) {
    for (const PeerEnd& end : each->ends) {
      EXPECT_EQ(end.result, PeerResult::kWrong);
      EXPECT_EQ(end.cut, 0u);
    }
    EXPECT_EQ(each->answer.bytes(), 0u);
  }
}

TEST(FetchAnswerTest, WhatWasNotAskedForOrCameBeforeBreaksTheRules) {
  Asked asked;
  EXPECT_FALSE(asked.take(message({.index = 3}, {})));
  EXPECT_TRUE(asked.take(message({.index = 0}, {})));
  EXPECT_FALSE(asked.take(message({.index = 0}, {})));
  EXPECT_FALSE(asked.take(messages(0, asked.samples[0])[0]));
  EXPECT_EQ(asked.ends.size(), 1u);
}

TEST(FetchAnswerTest, PartsOutOfTheirOrderBreakTheRules) {
  const auto parts = messages(2, three_samples()[2]);
  EXPECT_FALSE(Asked().take(parts[1]));
  Asked repeated;
  EXPECT_TRUE(repeated.take(parts[0]));
  EXPECT_FALSE(repeated.take(parts[0]));
  Asked skipped;
  EXPECT_TRUE(skipped.take(parts[0]));
  EXPECT_FALSE(skipped.take(parts[2]));
  Asked between;
  EXPECT_TRUE(between.take(parts[0]));
  EXPECT_FALSE(between.take(message({.index = 0}, {})));
}

TEST(FetchAnswerTest, GarbageBreaksTheRules) {
  for (const std::size_t length : {0u, 1u, 31u, 32u, 33u, 1000u}) EXPECT_FALSE(Asked().take(content(length, 5)));
}

TEST(FetchAnswerTest, WhateverComesEveryWantEndsOnceAndHereMeansTheRightBytes) {
  std::mt19937_64 random(fresh_seed());
  const Message cut = content(kPartBytes + 77, 9);
  const int rounds = soak() ? 5'000 : 500;
  for (int round = 0; round < rounds; ++round) {
    Asked asked;
    std::vector<Message> all;
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (random() % 4 == 0) continue;
      const bool is_cut = i == 2 && random() % 2 == 0;
      for (Message& bytes : messages(i, is_cut ? cut : asked.samples[i], is_cut)) all.push_back(std::move(bytes));
    }
    if (random() % 2 == 0 && !all.empty()) std::swap(all[random() % all.size()], all[random() % all.size()]);
    if (random() % 2 == 0 && !all.empty()) all.push_back(all[random() % all.size()]);
    for (Message& bytes : all) {
      if (random() % 4 == 0) bytes[random() % std::min<std::size_t>(bytes.size(), 140)] ^= std::byte{4};
    }
    const bool fine =
        std::ranges::all_of(all, [&](const Message& m) { return asked.take(m, random() % (m.size() + 1)); });
    asked.answer.end(fine ? PeerResult::kUnreachable : PeerResult::kWrong, asked.ends);
    const Results results = asked.results();
    ASSERT_EQ(results.size(), 3u);
    for (const PeerEnd& end : asked.ends) {
      if (end.result != PeerResult::kHere) continue;
      const std::span<const std::byte> here = asked.memory[end.token - 20];
      const Message& expected = end.cut > 0 ? cut : asked.samples[end.token - 20];
      ASSERT_TRUE(std::ranges::equal(end.cut > 0 ? here.first(end.cut) : here, expected));
    }
  }
}

}  // namespace
}  // namespace foreload
