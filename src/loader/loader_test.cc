#include "foreload/loader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/event_record.h"
#include "loader/ledger.h"

namespace foreload {
namespace {

Seen read_all(LoaderOptions options, Epoch epochs) {
  options.epochs = epochs;
  Loader loader = open(std::move(options));
  Seen seen;
  for (Epoch e = 0; e < epochs; ++e) EXPECT_TRUE(read_epoch(loader, seen));
  return seen;
}

TEST(LoaderTest, EveryEpochDeliversTheScheduleExactly) {
  const Ledger ledger(1003);
  EXPECT_EQ(read_all(ledger.options(), 3), reference(1003, ledger.options(), 3));
}

TEST(LoaderTest, OrderAndBytesDoNotDependOnThreadsEngineOrCache) {
  const Ledger ledger(300);
  const Seen expected = reference(300, ledger.options(), 2);
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    for (const char* io : {"uring", "threads"}) {
      for (bool cache : {true, false}) {
        LoaderOptions options = ledger.options();
        options.workers = threads;
        options.io = io;
        options.cache = cache;
        EXPECT_EQ(read_all(options, 2), expected) << threads << " threads, " << io << ", cache " << cache;
      }
    }
  }
}

TEST(LoaderTest, DirectReadsGiveTheSameSamples) {
  const Ledger ledger(100);
  LoaderOptions options = ledger.options();
  options.direct_io = true;
  EXPECT_EQ(read_all(options, 2), reference(100, ledger.options(), 2));
}

TEST(LoaderTest, LaterEpochsReadOnlyWhatIsNotCached) {
  const Ledger ledger(2000);
  LoaderOptions options = ledger.options(16);
  options.workers = 1;
  for (Bytes memory = 2_MiB; memory < 32_MiB; memory += 64_KiB) {  // until a part of the 1 MB of data fits
    options.memory = memory;
    auto loader = Loader::open(options);
    if (!loader.ok()) continue;
    const Bytes capacity = loader->stats().cache_capacity;
    if (capacity < 200'000 || capacity > 900'000) continue;
    Seen seen;
    for (int e = 0; e < 3; ++e) ASSERT_TRUE(read_epoch(*loader, seen));
    const LoaderStats stats = loader->stats();
    EXPECT_EQ(stats.cached_bytes, capacity);
    const Bytes homes = capacity / (Ledger::kLength + 16) * Ledger::kLength;
    EXPECT_EQ(stats.epochs[0].source_bytes, 2000 * Ledger::kLength);
    // A sample in transit at the end of one epoch and wanted at the beginning of the next is read once for both.
    for (int e : {1, 2}) {
      EXPECT_LE(stats.epochs[e].source_bytes, 2000 * Ledger::kLength - homes);
      EXPECT_GE(stats.epochs[e].source_bytes, 2000 * Ledger::kLength - homes - 50 * Ledger::kLength);
      EXPECT_EQ(stats.epochs[e].source_bytes + stats.epochs[e].memory_bytes, 2000 * Ledger::kLength);
    }
    return;
  }
  FAIL() << "no budget leaves room for a part of the dataset";
}

TEST(LoaderTest, ResumeContinuesExactlyWithOtherThreadsAndAnEmptyCache) {
  const Ledger ledger(500);
  const Seen expected = reference(500, ledger.options(), 3);
  for (std::uint64_t stop : {0u, 1u, 17u, 62u, 63u, 64u, 100u}) {
    State state;
    Seen seen;
    {
      Loader first = open(ledger.options());
      std::uint64_t left = stop;
      while (left > first.batches_per_epoch()) {
        ASSERT_TRUE(read_epoch(first, seen));
        left -= first.batches_per_epoch();
      }
      ASSERT_TRUE(read_epoch(first, seen, left));
      state = *state_from_json(state_to_json(first.position()));
    }
    LoaderOptions options = ledger.options();
    options.workers = 3;
    options.cache = false;
    options.epochs = 3;
    Loader second = open(options);
    ASSERT_TRUE(second.seek(state).ok());
    for (Epoch e = state.epoch; e < 3; ++e) ASSERT_TRUE(read_epoch(second, seen));
    EXPECT_EQ(seen, expected) << "stopped after " << stop << " batches";
  }
}

TEST(LoaderTest, WorldsTogetherDeliverTheSameGlobalOrder) {
  const Ledger ledger(101);
  for (std::uint32_t world : {1u, 2u, 3u, 7u}) {
    LoaderOptions options = ledger.options();
    options.global_batch = 14;
    options.world = world;
    Seen seen;
    std::vector<SampleId> padded;
    for (options.rank = 0; options.rank < world; ++options.rank) {
      Loader loader = open(options);
      for (int e = 0; e < 2; ++e) ASSERT_TRUE(read_epoch(loader, seen));
      const std::vector<SampleId> listed = loader.stats().epochs[0].padded;
      padded.insert(padded.end(), listed.begin(), listed.end());
    }
    std::vector<SampleId> expected;
    for (Position p = 101; seen.contains({0, p}); ++p) expected.push_back(seen[{0, p}]);
    EXPECT_EQ(padded, expected);
    EXPECT_EQ(seen, reference(101, options, 2)) << "world " << world;
  }
}

TEST(LoaderTest, AStateSavedByOneWorldIsContinuedByAnother) {
  const Ledger ledger(200);
  LoaderOptions options = ledger.options();
  options.global_batch = 12;
  options.last_batch = LastBatch::kRagged;
  options.world = 3;
  Seen seen;
  State state;
  for (options.rank = 0; options.rank < 3; ++options.rank) {
    Loader loader = open(options);
    ASSERT_TRUE(read_epoch(loader, seen, 5));
    state = loader.position();
  }
  options.world = 2;
  options.epochs = 1;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    Loader loader = open(options);
    ASSERT_TRUE(loader.seek(state).ok());
    ASSERT_TRUE(read_epoch(loader, seen));
  }
  EXPECT_EQ(seen, reference(200, options, 1));
}

TEST(LoaderTest, AForeignStateIsRefusedAndNamesBothValues) {
  const Ledger ledger(64);
  Loader loader = open(ledger.options());
  State state = loader.position();
  state.seed = 8;
  const Status other_seed = loader.seek(state);
  ASSERT_FALSE(other_seed.ok());
  EXPECT_EQ(other_seed.error().code, Code::kMismatch);
  EXPECT_NE(other_seed.error().message.find("seed is 8, here it is 7"), std::string::npos)
      << other_seed.error().message;
  for (const Position position : {Position{3}, Position{9999}, Position{1} << 63, ~Position{0}}) {
    state = loader.position();
    state.position = position;
    EXPECT_FALSE(loader.seek(state).ok()) << position;
  }
  EXPECT_FALSE(loader.seek_epoch(Epoch{1} << 63).ok());
  LoaderOptions options = ledger.options(16);
  Loader other_batch = open(options);
  EXPECT_FALSE(other_batch.seek(loader.position()).ok());
  Seen seen;
  EXPECT_TRUE(read_epoch(loader, seen)) << "a refused state changes nothing";
  EXPECT_EQ(seen.size(), 64u);
}

TEST(LoaderTest, BatchesOutliveTheLoader) {
  const Ledger ledger(32);
  std::optional<Batch> kept;
  {
    Loader loader = open(ledger.options());
    kept = std::move(*loader.next());
  }
  ASSERT_TRUE(kept);
  for (std::size_t i = 0; i < kept->size(); ++i) {
    EXPECT_EQ(Ledger::read(kept->data().subspan(i * Ledger::kLength, Ledger::kLength)), kept->ids()[i]);
  }
}

TEST(LoaderTest, HoldingOneBatchDoesNotStopTheOthers) {
  const Ledger ledger(400);
  Loader loader = open(ledger.options());
  const Batch kept = std::move(**loader.next());
  const SampleId first = kept.ids()[0];
  Seen seen;
  ASSERT_TRUE(read_epoch(loader, seen));
  EXPECT_EQ(seen.size(), 392u);
  EXPECT_EQ(Ledger::read(kept.data().first(Ledger::kLength)), first);
}

TEST(LoaderTest, HoldingAllBatchesIsAnErrorAndNotAHang) {
  const Ledger ledger(400);
  Loader loader = open(ledger.options());
  std::vector<Batch> held;
  for (;;) {
    auto batch = loader.next();
    if (!batch.ok()) {
      EXPECT_EQ(batch.error().code, Code::kInvalid);
      EXPECT_NE(batch.error().message.find("release"), std::string::npos);
      break;
    }
    held.push_back(std::move(**batch));
    ASSERT_LE(held.size(), 64u);
  }
  held.clear();
  EXPECT_TRUE(loader.next().ok()) << "and is over when they are released";
}

TEST(LoaderTest, ClosesFromAnyState) {
  const Ledger ledger(200);
  for (int round = 0; round < 30; ++round) {
    LoaderOptions options = ledger.options();
    options.workers = 1 + round % 3;
    options.storage = round % 2 == 0 ? "" : "1MB/s,50ms";
    Loader loader = open(options);
    for (int n = 0; n < round % 5; ++n) ASSERT_TRUE(loader.next().ok());
    if (round % 7 == 0) {
      ASSERT_TRUE(loader.seek_epoch(3).ok());
    }
  }
}

bool starts(const LoaderOptions& options) {
  auto loader = Loader::open(options);
  return loader.ok() && loader->next().ok();
}

// Room for a sample or two: whoever waits for room must be woken, whatever the threads do at that moment.
TEST(LoaderTest, ATransitForOneSampleNeverStops) {
  constexpr std::size_t kLarge = 300'000;
  const TestFolder folder;
  for (int id = 0; id < 12; ++id) folder.write("s" + std::to_string(100 + id) + ".bin", std::string(kLarge, 'x'));
  for (const char* io : {"uring", "threads"}) {
    for (const bool direct : {false, true}) {
      LoaderOptions options;
      options.dataset = {folder.path()};
      options.chain = {array(DType::kU8, {kLarge}, true)};
      options.batch = 2;
      options.workers = 3;
      options.io = io;
      options.direct_io = direct;
      options.cache = false;
      options.epochs = 60;
      for (options.memory = 8_MiB; !starts(options); options.memory += 128_KiB) ASSERT_LT(options.memory, 64_MiB);
      Loader loader = open(options);
      while (loader.position().epoch < options.epochs) ASSERT_TRUE(loader.next().ok());
    }
  }
}

TEST(LoaderTest, BatchesMayBeReleasedByAnotherThreadDuringSeek) {
  const Ledger ledger(200);
  Loader loader = open(ledger.options());
  for (int round = 0; round < 20; ++round) {
    std::optional<Batch> batch = std::move(*loader.next());
    std::jthread other([held = std::move(batch)]() mutable { held.reset(); });
    ASSERT_TRUE(loader.seek_epoch(round).ok());
  }
}

TEST(LoaderTest, TheEventRecordTellsTheWholeRun) {
  const Ledger ledger(100);
  LoaderOptions options = ledger.options();
  options.record = ledger.folder().path() + ".record";
  options.epochs = 2;
  read_all(options, 2);
  const auto events = read_event_record(options.record);
  std::filesystem::remove(options.record);
  ASSERT_TRUE(events.ok()) << events.error().message;
  std::map<EventKind, std::uint64_t> counts;
  for (const Event& event : *events) ++counts[event.kind];
  EXPECT_EQ(counts[EventKind::kOpen], 1u);
  EXPECT_EQ(counts[EventKind::kReadStarted], 100u);
  EXPECT_EQ(counts[EventKind::kReadDone], 100u);
  EXPECT_EQ(counts[EventKind::kHit] + counts[EventKind::kJoined], 100u);
  EXPECT_EQ(counts[EventKind::kPrepDone], 200u);
  EXPECT_EQ(counts[EventKind::kSlotOpened], 26u);
  EXPECT_EQ(counts[EventKind::kPublished], 26u);
  EXPECT_EQ(counts[EventKind::kDelivered], 26u);
  EXPECT_EQ(counts[EventKind::kEpochEnd], 2u);
}

TEST(LoaderTest, InterruptEndsAWaitAndNothingElse) {
  const Ledger ledger(100);
  LoaderOptions options = ledger.options();
  options.storage = "1kB/s";
  Loader loader = open(options);
  std::jthread other([&] { loader.interrupt(); });
  const auto batch = loader.next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Code::kCancelled);
  EXPECT_EQ(loader.position().position, 0u);
}

TEST(LoaderTest, ContradictionsAreRefusedInWords) {
  const Ledger ledger(10);
  const auto message = [](LoaderOptions options) {
    auto loader = Loader::open(std::move(options));
    return loader.ok() ? std::string("accepted") : loader.error().message;
  };
  EXPECT_NE(message(ledger.options(11)).find("larger than the dataset"), std::string::npos);
  LoaderOptions options = ledger.options(1);
  options.world = 11;
  EXPECT_NE(message(options).find("world of 11"), std::string::npos);
  options = ledger.options();
  options.rank = 1;
  EXPECT_NE(message(options).find("rank 1"), std::string::npos);
  options = ledger.options();
  options.memory = 100'000;
  EXPECT_NE(message(options).find("at least"), std::string::npos);
  options = ledger.options();
  options.dataset = {"/no/such/folder"};
  EXPECT_NE(message(options).find("/no/such/folder"), std::string::npos);
  options = ledger.options();
  options.chain = {{.name = "sharpen"}};
  EXPECT_NE(message(options).find("sharpen"), std::string::npos);
}

TEST(LoaderTest, MoreRanksThanSamplesWorkWhenRaggedIsAskedFor) {
  const Ledger ledger(3);
  LoaderOptions options = ledger.options(2);
  options.world = 5;
  options.last_batch = LastBatch::kRagged;
  Seen seen;
  for (options.rank = 0; options.rank < 5; ++options.rank) {
    Loader loader = open(options);
    EXPECT_EQ(loader.batches_per_epoch(), 1u);
    ASSERT_TRUE(read_epoch(loader, seen));
  }
  EXPECT_EQ(seen, reference(3, options, 1));
}

}  // namespace
}  // namespace foreload
