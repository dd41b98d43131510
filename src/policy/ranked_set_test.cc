#include "policy/ranked_set.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "plan/test_statistics.h"

namespace foreload {
namespace {

TEST(RankedSetTest, TheLargestRankStandsFirstWhateverHappened) {
  std::mt19937_64 random(fresh_seed());
  constexpr SampleId kSamples = 40;
  RankedSet set(kSamples);
  std::map<SampleId, std::uint64_t> ranks;
  for (int turn = 0; turn < 20'000; ++turn) {
    const SampleId id = random() % kSamples;
    if (random() % 3 == 0) {
      set.remove(id);
      ranks.erase(id);
    } else {
      const std::uint64_t rank = random() % 50;
      set.put({rank, id});
      ranks[id] = rank;
    }
    if (random() % 500 == 0) {
      const auto other = [&](SampleId of) { return (of * 17 + static_cast<SampleId>(turn)) % 23; };
      set.rank_anew(other);
      for (auto& [of, rank] : ranks) rank = other(of);
    }
    std::set<std::pair<std::uint64_t, SampleId>> ordered;
    for (const auto& [of, rank] : ranks) ordered.emplace(rank, of);
    ASSERT_EQ(set.size(), ranks.size());
    ASSERT_EQ(set.has(id), ranks.contains(id));
    const auto largest = set.largest();
    ASSERT_EQ(largest.has_value(), !ordered.empty());
    if (!largest) continue;
    ASSERT_EQ(std::pair(largest->rank, largest->id), *ordered.rbegin());
  }
}

}  // namespace
}  // namespace foreload
