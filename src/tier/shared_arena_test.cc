#include "tier/shared_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/region.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 200;
constexpr unsigned kMembers = 4;
constexpr Bytes kPage = 4096;

Bytes length_of(SampleId id) {
  return 100 + id * 7;
}
std::byte content(SampleId id, Bytes at) {
  return static_cast<std::byte>(id * 31 + at);
}

Bytes all_homes() {
  Bytes all = 0;
  for (SampleId id = 0; id < kSamples; ++id) all += SharedArena::footprint(length_of(id));
  return all;
}

// A region with homes for the first samples, and who is alive: members with the generation that stands there.
class Homes {
 public:
  explicit Homes(Bytes homes = all_homes())
      : options_{.samples = kSamples, .homes = homes},
        region_(*Region::map(SharedArena::region_bytes(options_), "a test")) {
    SampleId id = 0;
    const auto next = [&] { return id < kSamples ? std::optional(id++) : std::nullopt; };
    SharedArena::format(region_.bytes(), options_, next, length_of);
    for (auto& generation : alive_) generation = 1;
  }

  std::unique_ptr<SharedArena> member(unsigned index) {
    const MemberId self{static_cast<std::uint8_t>(index), alive_[index]};
    auto arena = SharedArena::open(region_.bytes(), options_, self,
                                   [this](MemberId member) { return alive_[member.index] == member.generation; });
    EXPECT_TRUE(arena.ok());
    return std::move(*arena);
  }
  void dies(unsigned index) { ++alive_[index]; }  // and may come again as another

 private:
  SharedArenaOptions options_;
  Region region_;
  std::array<std::atomic<std::uint16_t>, kMembers> alive_{};
};

void write(SampleId id, std::span<std::byte> into) {
  for (Bytes i = 0; i < into.size(); ++i) into[i] = content(id, i);
}
bool is_whole(SampleId id, std::span<const std::byte> bytes) {
  for (Bytes i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != content(id, i)) return false;
  }
  return bytes.size() == length_of(id);
}

TEST(SharedArenaTest, OneReadsASampleAndAllHaveIt) {
  Homes homes;
  const auto first = homes.member(0);
  const auto second = homes.member(1);
  first->reserved_to(first->end());
  std::span<std::byte> into;
  EXPECT_FALSE(second->lease(3, length_of(3)));
  ASSERT_EQ(first->begin(3, length_of(3), into), SharedArena::Begun::kMine);
  EXPECT_EQ(second->begin(3, length_of(3), into), SharedArena::Begun::kElsewhere);
  ASSERT_EQ(first->begin(4, length_of(4), into), SharedArena::Begun::kMine);
  first->abandon(4);
  EXPECT_EQ(second->begin(4, length_of(4), into), SharedArena::Begun::kMine);
  write(4, into);
  { const Lease lease = second->commit(4, length_of(4)); }
  const auto lease = first->lease(4, length_of(4));
  ASSERT_TRUE(lease);
  EXPECT_TRUE(is_whole(4, lease->bytes()));
  EXPECT_EQ(first->used(), SharedArena::footprint(length_of(4)));
}

TEST(SharedArenaTest, TheFlightOfTheDeadIsTakenOver) {
  Homes homes;
  const auto first = homes.member(0);
  const auto second = homes.member(1);
  first->reserved_to(first->end());
  std::span<std::byte> into;
  ASSERT_EQ(first->begin(3, length_of(3), into), SharedArena::Begun::kMine);
  homes.dies(0);
  EXPECT_EQ(second->begin(3, length_of(3), into), SharedArena::Begun::kMine);
  const auto again = homes.member(0);  // another life at the same place
  EXPECT_EQ(again->begin(3, length_of(3), into), SharedArena::Begun::kElsewhere);
}

SlotCopy copy_of(const SharedArena& arena, SampleId id) {
  return SlotCopy::parse(arena.memory().subspan(SharedArena::slot_offset(id)).first<SlotCopy::kBytes>());
}

TEST(SharedArenaTest, WhoeverHasOnlyCopiesFindsASampleAndItsHash) {
  Homes homes;
  const auto arena = homes.member(0);
  arena->reserved_to(arena->end());
  std::span<std::byte> into;
  const SampleId last = kSamples - 1;
  EXPECT_EQ(arena->hash(last), std::nullopt);
  EXPECT_FALSE(copy_of(*arena, last).is_resident());
  ASSERT_EQ(arena->begin(last, length_of(last), into), SharedArena::Begun::kMine);
  write(last, into);
  const SlotCopy flying = copy_of(*arena, last);
  EXPECT_FALSE(flying.is_resident());
  EXPECT_EQ(arena->hash(last), std::nullopt);
  (void)arena->commit(last, length_of(last));
  const SlotCopy copy = copy_of(*arena, last);
  EXPECT_NE(copy, flying);
  EXPECT_TRUE(copy.is_resident());
  const auto bytes = arena->memory().subspan(copy.offset, length_of(last));
  EXPECT_TRUE(is_whole(last, bytes));
  EXPECT_EQ(copy.hash, hash_bytes(bytes));
  EXPECT_EQ(arena->hash(last), copy.hash);
  EXPECT_LE(SharedArena::slot_offset(last) + SlotCopy::kBytes, SharedArena::table_bytes(kSamples));
}

TEST(SharedArenaTest, ASampleThatFailedOnceHasTheHashOfWhatLanded) {
  Homes homes;
  const auto arena = homes.member(0);
  arena->reserved_to(arena->end());
  std::span<std::byte> into;
  ASSERT_EQ(arena->begin(5, length_of(5), into), SharedArena::Begun::kMine);
  const SlotCopy first = copy_of(*arena, 5);
  arena->abandon(5);
  ASSERT_EQ(arena->begin(5, length_of(5), into), SharedArena::Begun::kMine);
  EXPECT_NE(copy_of(*arena, 5).word, first.word) << "another life of the slot";
  write(5, into);
  EXPECT_EQ(arena->commit(5, length_of(5)).bytes().size(), length_of(5));
  EXPECT_EQ(arena->hash(5), hash_bytes(into));
}

TEST(SharedArenaTest, HomesWithoutMemoryAreAskedForUntilGrowthEnds) {
  Homes homes;
  const auto arena = homes.member(0);
  int asked = 0;
  arena->on_wanted([&] { ++asked; });
  std::span<std::byte> into;
  EXPECT_EQ(arena->begin(0, length_of(0), into), SharedArena::Begun::kNotYet);
  EXPECT_EQ(asked, 1);
  EXPECT_GT(arena->wanted(), arena->reserved());
  arena->reserved_to(arena->reserved() + kPage);
  EXPECT_EQ(arena->begin(0, length_of(0), into), SharedArena::Begun::kMine);
  EXPECT_EQ(arena->begin(kSamples - 1, length_of(kSamples - 1), into), SharedArena::Begun::kNotYet);
  EXPECT_TRUE(arena->has_home(kSamples - 1));
  arena->end_growth();
  EXPECT_EQ(arena->begin(kSamples - 1, length_of(kSamples - 1), into), SharedArena::Begun::kNoHome);
  EXPECT_FALSE(arena->has_home(kSamples - 1));
  EXPECT_TRUE(arena->has_home(0)) << "what has memory stays";
}

TEST(SharedArenaTest, WhatDoesNotFitHasNoHome) {
  Homes homes(SharedArena::footprint(length_of(0)) + SharedArena::footprint(length_of(1)));
  const auto arena = homes.member(0);
  EXPECT_TRUE(arena->has_home(0));
  EXPECT_TRUE(arena->has_home(1));
  EXPECT_FALSE(arena->has_home(kSamples - 1));
  std::span<std::byte> into;
  EXPECT_EQ(arena->begin(kSamples - 1, length_of(kSamples - 1), into), SharedArena::Begun::kNoHome);
}

TEST(SharedArenaTest, MemoryOfAnotherDatasetIsRefused) {
  const SharedArenaOptions options{.samples = 10, .homes = kPage};
  Region region = *Region::map(SharedArena::region_bytes(options), "a test");
  EXPECT_FALSE(SharedArena::open(region.bytes(), options, {}, nullptr).ok()) << "nobody formatted it";
  SharedArena::format(
      region.bytes(), options, [] { return std::nullopt; }, length_of);
  EXPECT_TRUE(SharedArena::open(region.bytes(), options, {}, nullptr).ok());
  EXPECT_FALSE(SharedArena::open(region.bytes(), {.samples = 11, .homes = kPage}, {}, nullptr).ok());
}

// Reads all samples in an order of its own. Now and then a read fails, or the member dies in the middle of one and
// comes back.
void read_all(Homes& homes, unsigned index, unsigned seed, std::array<std::atomic<int>, kSamples>& landed) {
  std::mt19937 random(seed);
  std::vector<SampleId> missing(kSamples);
  std::iota(missing.begin(), missing.end(), 0);
  auto arena = homes.member(index);
  for (int turn = 0; turn < 1'000'000 && !missing.empty(); ++turn) {
    const std::size_t at = random() % missing.size();
    const SampleId id = missing[at];
    if (const auto lease = arena->lease(id, length_of(id))) {
      EXPECT_TRUE(is_whole(id, lease->bytes())) << id;
      EXPECT_EQ(arena->hash(id), hash_bytes(lease->bytes())) << id;
      missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    std::span<std::byte> into;
    const SharedArena::Begun begun = arena->begin(id, length_of(id), into);
    if (begun == SharedArena::Begun::kNotYet) arena->reserved_to(std::min(arena->end(), arena->reserved() + kPage));
    if (begun != SharedArena::Begun::kMine) continue;
    const unsigned fate = random() % 8;
    write(id, into.first(fate < 2 ? into.size() / 2 : into.size()));
    if (fate == 0) {
      arena->abandon(id);
    } else if (fate == 1) {
      homes.dies(index);
      arena = homes.member(index);
    } else {
      ++landed[id];
      EXPECT_TRUE(is_whole(id, arena->commit(id, length_of(id)).bytes()));
    }
  }
  EXPECT_TRUE(missing.empty());
}

// Members are threads, over one mapping: TSan sees how their bytes are ordered.
TEST(SharedArenaTest, MembersAtTheSameTimeReadEverySampleOnce) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  for (unsigned round = 0; round < (std::getenv("FORELOAD_SOAK") != nullptr ? 200u : 20u); ++round) {
    SCOPED_TRACE(round);
    Homes homes;
    std::array<std::atomic<int>, kSamples> landed{};
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < kMembers; ++i) {
        threads.emplace_back([&, i] { read_all(homes, i, seed + round * kMembers + i, landed); });
      }
    }
    for (SampleId id = 0; id < kSamples; ++id) ASSERT_EQ(landed[id], 1) << id;
    ASSERT_EQ(homes.member(0)->used(), all_homes());
  }
}

TEST(SharedArenaTest, WhatOthersWantIsTakenOffTheListOnce) {
  Homes homes;
  const auto agent = homes.member(0);
  const auto reader = homes.member(1);
  EXPECT_EQ(reader->take_wanted(), std::nullopt);
  for (const SampleId id : {3u, 0u, 7u}) EXPECT_TRUE(agent->want(id));
  EXPECT_FALSE(agent->want(3)) << "it is listed";
  EXPECT_FALSE(agent->want(kSamples)) << "there is none";
  EXPECT_FALSE(agent->want(~SampleId{0}));
  std::multiset<SampleId> taken;
  while (const auto id = reader->take_wanted()) taken.insert(*id);
  EXPECT_EQ(taken, (std::multiset<SampleId>{0, 3, 7}));
}

TEST(SharedArenaTest, WithoutAnIndexItIsReadByWhatStandsThere) {
  Homes homes;
  const auto arena = homes.member(0);
  const auto options = SharedArena::options_of(arena->memory());
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->samples, kSamples);
  EXPECT_EQ(SharedArena::region_bytes(*options), arena->memory().size());
  std::vector<std::uint64_t> noise(arena->memory().size() / 8);
  std::memcpy(noise.data(), arena->memory().data(), noise.size() * 8);
  for (const std::uint64_t samples : {~std::uint64_t{0}, std::uint64_t{1} << 40, arena->memory().size() / 24 + 1}) {
    noise[1] = samples;
    EXPECT_FALSE(SharedArena::options_of(std::as_bytes(std::span(noise))).ok()) << samples;
  }
  EXPECT_FALSE(SharedArena::options_of(std::as_bytes(std::span(noise)).first(100)).ok());
}

}  // namespace
}  // namespace foreload
