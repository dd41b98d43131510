// What memory keeps, by policy: the same samples are delivered with each of them, from fewer or more reads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/event_record.h"
#include "loader/ledger.h"
#include "policy/eviction.h"
#include "policy/replay.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 3000;
constexpr Bytes kAll = kSamples * Ledger::kLength;
constexpr Epoch kEpochs = 6;
constexpr Eviction kKinds[] = {Eviction::kStatic, Eviction::kFrequency, Eviction::kBelady, Eviction::kLru};

class LoaderEvictionTest : public testing::Test {
 protected:
  // A budget that leaves the cache about 35 % of the dataset.
  LoaderOptions options(Eviction kind, std::uint32_t world = 1, std::uint32_t rank = 0) {
    return with_room(ledger_.options(8), kind, world, rank);
  }

  LoaderOptions with_room(LoaderOptions options, Eviction kind, std::uint32_t world, std::uint32_t rank) {
    options.workers = 1;
    options.world = world;
    options.rank = rank;
    options.epochs = kEpochs;
    options.eviction = kind;
    for (options.memory = 2_MiB; options.memory < 32_MiB; options.memory += 16_KiB) {
      auto loader = Loader::open(options);
      if (loader.ok() && loader->stats().cache_capacity * 100 / kAll >= 35) return options;
    }
    ADD_FAILURE() << "no budget leaves room for a part of the dataset";
    return options;
  }

  // Reads the epochs of one rank and adds what it saw; the bytes from memory in them that did not have to be read for
  // it ahead of need. Over all epochs: when a home is filled depends on when storage has nothing else to do.
  Bytes read(const LoaderOptions& options, Seen& seen) {
    Loader loader = open(options);
    for (Epoch e = 0; e < kEpochs; ++e) EXPECT_TRUE(read_epoch(loader, seen));
    const LoaderStats stats = loader.stats();
    EXPECT_LE(stats.cached_bytes, stats.cache_capacity + 4096) << "whole pages";
    Bytes memory = 0;
    Bytes filled = 0;
    for (const EpochStats& epoch : stats.epochs) {
      memory += epoch.memory_bytes;
      filled += epoch.filled_bytes;
      const Bytes read = epoch.memory_bytes + epoch.disk_bytes + epoch.source_bytes;
      EXPECT_EQ(read, epoch.samples * Ledger::kLength + epoch.filled_bytes);
      if (evicts(options.eviction)) {
        EXPECT_EQ(epoch.filled_bytes, 0u) << "who has a home is not known ahead";
      }
    }
    EXPECT_GE(memory, filled);
    return memory - filled;
  }

  Ledger ledger_{kSamples};
};

TEST_F(LoaderEvictionTest, EveryPolicyDeliversTheSame) {
  for (const std::uint32_t world : {1u, 2u}) {
    std::map<Eviction, Bytes> hits;
    for (const Eviction kind : kKinds) {
      SCOPED_TRACE(static_cast<int>(kind));
      Seen seen;
      LoaderOptions here = options(kind, world);
      for (here.rank = 0; here.rank < world; ++here.rank) hits[kind] += read(here, seen);
      EXPECT_EQ(seen, reference(kSamples, here, kEpochs));
    }
    EXPECT_LT(hits[Eviction::kLru], hits[Eviction::kBelady]);
    if (world == 2) {
      EXPECT_GT(hits[Eviction::kBelady] * 20, hits[Eviction::kFrequency] * 21);
      EXPECT_GT(hits[Eviction::kFrequency], hits[Eviction::kStatic]);
    }
  }
}

TEST_F(LoaderEvictionTest, WeightedDrawsAndEchoesAreTheSameWithEveryPolicy) {
  for (const bool weighted : {true, false}) {
    std::map<Eviction, Bytes> hits;
    for (const Eviction kind : kKinds) {
      SCOPED_TRACE(static_cast<int>(kind));
      LoaderOptions drawn = ledger_.options(8);
      for (std::uint64_t i = 0; weighted && i < kSamples; ++i)
        drawn.weights.push_back(1.0 / static_cast<double>(i + 1));
      if (!weighted) drawn.echo = 2;
      drawn = with_room(drawn, kind, 2, 0);
      Seen seen;
      for (drawn.rank = 0; drawn.rank < 2; ++drawn.rank) hits[kind] += read(drawn, seen);
      EXPECT_EQ(seen, reference(kSamples, drawn, kEpochs));
    }
    EXPECT_LT(hits[Eviction::kLru], hits[Eviction::kBelady]);
    EXPECT_LT(hits[Eviction::kStatic], hits[Eviction::kBelady]);
  }
}

TEST_F(LoaderEvictionTest, ADiskBelowServesWhatWasEvicted) {
  for (const Eviction kind : {Eviction::kBelady, Eviction::kLru}) {
    const TestFolder disk;
    LoaderOptions here = options(kind);
    here.disk = disk.path();
    here.storage = "1GB/s,20ms";  // so that the disk is quicker, whatever else this machine does
    for (const bool again : {false, true}) {
      Loader loader = open(here);
      Seen seen;
      for (Epoch e = 0; e < kEpochs; ++e) EXPECT_TRUE(read_epoch(loader, seen));
      EXPECT_EQ(seen, reference(kSamples, here, kEpochs));
      const LoaderStats stats = loader.stats();
      EXPECT_EQ(stats.epochs[0].source_bytes, again ? 0 : kAll);
      EXPECT_EQ(stats.epochs[kEpochs - 1].source_bytes, 0u);
      EXPECT_GT(stats.epochs[kEpochs - 1].disk_bytes, kAll / 2);
    }
  }
}

TEST_F(LoaderEvictionTest, SeekingKeepsWhatIsThereAndDeliversTheSame) {
  const LoaderOptions here = options(Eviction::kBelady, 2, 1);
  Loader loader = open(here);
  const Seen expected = reference(kSamples, here, kEpochs);
  for (const Epoch epoch : {0u, 3u, 1u, 1u, 5u, 0u}) {
    Seen seen;
    ASSERT_TRUE(loader.seek_epoch(epoch).ok());
    ASSERT_TRUE(read_epoch(loader, seen, 50));
    for (const auto& [place, id] : seen) ASSERT_EQ(expected.at(place), id);
  }
  ASSERT_TRUE(loader.seek_epoch(4).ok());
  Seen seen;
  ASSERT_TRUE(read_epoch(loader, seen));
  EXPECT_GT(loader.stats().cached_bytes, loader.stats().cache_capacity * 9 / 10);
}

TEST_F(LoaderEvictionTest, TheRecordReplayedIntoAFreshPolicyGivesTheSameDecisions) {
  const TestFolder folder;
  for (const Eviction kind : {Eviction::kBelady, Eviction::kLru}) {
    LoaderOptions here = options(kind, 2, 1);
    here.record = folder.path("record");
    Seen seen;
    (void)read(here, seen);
    auto events = read_event_record(here.record);
    ASSERT_TRUE(events.ok());
    const Stream stream(Schedule({.samples = kSamples, .seed = here.seed}),
                        SliceAssignment({.samples = kSamples, .global_batch = 16, .world = 2}),
                        {.rank = 1, .epochs = kEpochs});
    const auto replay = [&] {
      const auto policy = make_eviction(kind, {}, stream);
      policy->restart(0);
      return replay_eviction(*events, *policy, kSamples);
    };
    const auto count = [&](EventKind counted) {
      return std::count_if(events->begin(), events->end(), [&](const Event& event) { return event.kind == counted; });
    };
    const auto evictions = count(EventKind::kEvicted) + count(EventKind::kSpared) + count(EventKind::kBypassed);
    EXPECT_GT(evictions, 1000);
    const ReplayResult same = replay();
    EXPECT_EQ(same.different, 0u) << same.first_difference;
    EXPECT_GE(same.decisions, static_cast<std::uint64_t>(evictions));

    // It would notice another victim, and one that stayed.
    const auto victim = std::find_if(events->begin() + static_cast<std::ptrdiff_t>(events->size() / 2), events->end(),
                                     [](const Event& event) { return event.kind == EventKind::kEvicted; });
    ASSERT_NE(victim, events->end());
    const Event evicted = *victim;
    victim->a += 1;
    EXPECT_NE(replay().first_difference.find(fmt::format("a victim: the run had {}", evicted.a + 1)),
              std::string::npos);
    events->erase(victim);
    EXPECT_GT(replay().different, 0u);
  }
}

TEST_F(LoaderEvictionTest, RewritingDoesNotGoWithSamplesThatComeAndGo) {
  LoaderOptions both = ledger_.options();
  both.eviction = Eviction::kBelady;
  both.rewrite = Rewrite::kOn;
  const auto refused = Loader::open(both);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  both.eviction = Eviction::kFrequency;
  EXPECT_TRUE(Loader::open(both).ok());
  both.eviction = Eviction::kBelady;
  both.rewrite = Rewrite::kAuto;
  both.cache = false;
  Loader uncached = open(both);
  EXPECT_EQ(uncached.stats().cache_capacity, 0u);
}

}  // namespace
}  // namespace foreload
