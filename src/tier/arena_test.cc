#include "tier/arena.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace foreload {
namespace {

std::unique_ptr<Arena> make(ArenaOptions options) {
  auto arena = Arena::create(options);
  EXPECT_TRUE(arena.ok());
  return std::move(*arena);
}

Lease land(Arena& arena, SampleId id, Bytes length, Area area) {
  auto into = arena.begin(id, length, area);
  EXPECT_TRUE(into);
  std::memset(into->data(), static_cast<int>(id), length);
  return arena.commit(id, length);
}

TEST(ArenaTest, HomeSamplesStayAndHitsAreNotCopies) {
  auto arena = make({.samples = 8, .home = 10000, .transit = 0});
  EXPECT_FALSE(arena->lease(3, 100));
  const void* where = nullptr;
  {
    Lease first = land(*arena, 3, 100, Area::kHome);
    where = first.bytes().data();
  }
  auto again = arena->lease(3, 100);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->bytes().data(), where);
  EXPECT_EQ(again->bytes()[99], std::byte{3});
}

TEST(ArenaTest, TransitSamplesLeaveWithTheirLastLease) {
  auto arena = make({.samples = 8, .transit = Arena::footprint(5000)});
  Lease first = land(*arena, 1, 5000, Area::kTransit);
  EXPECT_FALSE(arena->begin(2, 5000, Area::kTransit)) << "there is room for one";
  auto second = arena->lease(1, 5000);
  first = Lease();
  EXPECT_TRUE(arena->lease(1, 5000)) << "the second lease keeps it";
  second.reset();
  EXPECT_FALSE(arena->lease(1, 5000));
  EXPECT_TRUE(arena->begin(2, 5000, Area::kTransit));
  arena->abandon(2);
  EXPECT_TRUE(arena->begin(2, 5000, Area::kTransit)) << "an abandoned flight gives its room back";
  arena->abandon(2);
}

TEST(ArenaTest, TheHomeHoldsExactlyWhatFootprintsAddUpTo) {
  Bytes planned = 0;
  std::vector<Bytes> lengths;
  for (Bytes i = 0; i < 500; ++i) {
    lengths.push_back(1 + i * 37 % 4001);
    planned += Arena::footprint(lengths.back());
  }
  auto arena = make({.samples = 500, .home = planned});
  for (SampleId id = 0; id < lengths.size(); ++id) (void)land(*arena, id, lengths[id], Area::kHome);
  EXPECT_EQ(arena->home_used(), planned);
}

TEST(ArenaTest, LeasesFromManyThreadsSeeWholeSamples) {
  auto arena = make({.samples = 4, .transit = 4 * Arena::footprint(4096)});
  std::vector<std::jthread> readers;
  for (int round = 0; round < 200; ++round) {
    const SampleId id = round % 4;
    Lease mine = land(*arena, id, 4096, Area::kTransit);
    std::vector<Lease> copies;
    for (int t = 0; t < 3; ++t) copies.push_back(std::move(*arena->lease(id, 4096)));
    readers.clear();
    for (auto& copy : copies) {
      readers.emplace_back([held = std::move(copy), id] {
        for (std::byte b : held.bytes()) ASSERT_EQ(b, static_cast<std::byte>(id));
      });
    }
  }
}

TEST(ArenaTest, AChangeExcludesLeasesAndLeasesExcludeAChange) {
  auto arena = make({.samples = 4, .home = 1000, .transit = 1000});
  EXPECT_FALSE(arena->begin_change(0, 100)) << "absent";
  { Lease passing = land(*arena, 1, 100, Area::kTransit); }
  {
    Lease passing = land(*arena, 2, 100, Area::kTransit);
    EXPECT_FALSE(arena->begin_change(2, 100)) << "not at home";
  }
  Lease held = land(*arena, 0, 100, Area::kHome);
  EXPECT_TRUE(arena->is_home(0));
  EXPECT_FALSE(arena->begin_change(0, 100)) << "leased";
  held = Lease();
  auto bytes = arena->begin_change(0, 100);
  ASSERT_TRUE(bytes);
  EXPECT_FALSE(arena->lease(0, 100));
  EXPECT_FALSE(arena->begin_change(0, 100)) << "one at a time";
  EXPECT_FALSE(arena->is_absent(0));
  EXPECT_FALSE(arena->is_flying(0));
  std::memset(bytes->data(), 77, bytes->size());
  arena->end_change(0);
  auto again = arena->lease(0, 100);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->bytes()[99], std::byte{77});
}

TEST(ArenaTest, EvictionFreesAHomeThatNobodyLeases) {
  auto arena = make({.samples = 4, .home = Arena::footprint(5000), .transit = 1000});
  EXPECT_FALSE(arena->evict(0)) << "absent";
  ASSERT_TRUE(arena->begin(0, 5000, Area::kHome));
  EXPECT_FALSE(arena->evict(0)) << "on its way";
  {
    const Lease held = arena->commit(0, 5000);
    EXPECT_FALSE(arena->evict(0)) << "leased";
    EXPECT_FALSE(arena->begin(1, 5000, Area::kHome));
  }
  {
    const Lease passing = land(*arena, 2, 100, Area::kTransit);
    EXPECT_FALSE(arena->evict(2)) << "not at home";
  }
  EXPECT_TRUE(arena->evict(0));
  EXPECT_TRUE(arena->is_absent(0));
  EXPECT_FALSE(arena->evict(0)) << "once";
  EXPECT_EQ(arena->home_used(), 0u);
  EXPECT_EQ(land(*arena, 1, 5000, Area::kHome).bytes()[4999], std::byte{1});
  ASSERT_TRUE(arena->begin_change(1, 5000));
  EXPECT_FALSE(arena->evict(1)) << "being changed";
  arena->end_change(1);
  EXPECT_TRUE(arena->evict(1));
  (void)land(*arena, 0, 5000, Area::kHome);
}

// Readers lease whatever is there while one thread evicts and fills the same room with other samples.
TEST(ArenaTest, WhoHasALeaseSeesItsSampleWhateverIsEvicted) {
  constexpr Bytes kEach = 1000;
  constexpr SampleId kSamples = 8;
  auto arena = make({.samples = kSamples, .home = 2 * Arena::footprint(kEach)});
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::atomic<int> seen{0};
  std::vector<std::jthread> readers;
  for (SampleId first = 0; first < 3; ++first) {
    readers.emplace_back([&, id = first]() mutable {
      for (; !done; id = (id + 1) % kSamples) {
        auto lease = arena->lease(id, kEach);
        if (!lease) continue;
        for (const std::byte b : lease->bytes()) wrong += b == static_cast<std::byte>(id) ? 0 : 1;
        lease.reset();
        ++seen;
        std::this_thread::yield();  // or it would be leased all the time
      }
    });
  }
  int evicted = 0;
  SampleId next = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto enough = [&] { return (evicted >= 300 && seen >= 300) || std::chrono::steady_clock::now() > deadline; };
  for (SampleId turn = 0; !enough(); ++turn) {
    evicted += arena->evict(turn % kSamples) ? 1 : 0;
    if (!arena->is_absent(next)) {
      next = (next + 1) % kSamples;
      continue;
    }
    const auto into = arena->begin(next, kEach, Area::kHome);
    if (!into) continue;
    std::memset(into->data(), static_cast<int>(next), kEach);
    (void)arena->commit(next, kEach);
  }
  done = true;
  readers.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(evicted, 300);
  EXPECT_GE(seen, 300);
}

TEST(ArenaTest, AChangedSampleHasAllOfItsRoom) {
  auto arena = make({.samples = 3, .home = 3 * Arena::footprint(Arena::grown(100)), .growth = true});
  for (SampleId id = 0; id < 3; ++id) EXPECT_EQ(land(*arena, id, 100, Area::kHome).bytes().size(), 100u);
  auto room = arena->begin_change(1, 100);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->size(), Arena::grown(100));
  std::memset(room->data(), 9, room->size());
  arena->end_change(1);
  EXPECT_FALSE(arena->is_home(1));
  EXPECT_FALSE(arena->begin_change(1, 100)) << "once is enough";
  auto changed = arena->lease(1, 100);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->bytes().size(), Arena::grown(100));
  EXPECT_EQ(changed->share().bytes().size(), Arena::grown(100));
  for (SampleId id : {0u, 2u}) EXPECT_EQ(arena->lease(id, 100)->bytes()[99], static_cast<std::byte>(id));
}

}  // namespace
}  // namespace foreload
