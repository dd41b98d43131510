// Reading ahead over the tiers: homes are filled before they are needed, and the decisions of a run can be made again
// from its record.
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/event_record.h"
#include "loader/ledger.h"
#include "policy/replay.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSamples = 3000;

// Waits until `done` says so, or long enough for the test to fail.
template <typename Done>
bool eventually(const Done& done) {
  for (const Time end = now() + 30s; now() < end;) {
    if (done()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

TEST(LoaderStorageTest, HomesAreFilledWhileTheTrainerStartsUp) {
  const Ledger ledger(kSamples);
  TestFolder disk;
  LoaderOptions options = ledger.options();
  Loader loader = open(options);
  EXPECT_TRUE(eventually([&] { return loader.stats().cached_bytes >= kSamples * Ledger::kLength; }))
      << "of " << kSamples << " samples " << loader.stats().cached_bytes / Ledger::kLength << " are at home";
  Seen seen;
  ASSERT_TRUE(read_epoch(loader, seen));
  EXPECT_EQ(seen, reference(kSamples, options, 1));
  const EpochStats epoch = loader.stats().epochs.at(0);
  EXPECT_EQ(epoch.source_bytes, kSamples * Ledger::kLength) << "every byte is read once";

  options.cache = false;
  options.disk = disk.path();
  Loader below = open(options);
  EXPECT_TRUE(eventually([&] { return below.stats().disk_used >= kSamples * Ledger::kLength; }));
}

TEST(LoaderStorageTest, TheDiskIsFilledAlsoWhenBatchesThatNobodyTakesFillTransit) {
  const Ledger ledger(kSamples);
  TestFolder disk;
  LoaderOptions options = ledger.options(64);
  options.memory = 5_MiB;  // transit for fewer samples than are looked ahead
  options.cache = false;
  options.disk = disk.path();
  Loader loader = open(options);
  // What the stream asks for next is left to it.
  EXPECT_TRUE(eventually([&] { return loader.stats().disk_used >= (kSamples - 400) * Ledger::kLength; }))
      << "of " << kSamples << " samples " << loader.stats().disk_used / Ledger::kLength << " are on the disk";
  Seen seen;
  ASSERT_TRUE(read_epoch(loader, seen));
  EXPECT_EQ(seen, reference(kSamples, options, 1));
}

TEST(LoaderStorageTest, NothingIsReadTwiceToFillAHome) {
  const Ledger ledger(kSamples);
  TestFolder disk;
  for (const bool with_disk : {false, true}) {
    LoaderOptions options = ledger.options(64);
    options.memory = 5_MiB;  // room for some
    options.epochs = 2;
    if (with_disk) options.disk = disk.path();
    Loader loader = open(options);
    Seen seen;
    ASSERT_TRUE(read_epoch(loader, seen));
    ASSERT_TRUE(read_epoch(loader, seen));
    EXPECT_EQ(seen, reference(kSamples, options, 2));
    const LoaderStats stats = loader.stats();
    const Bytes all = kSamples * Ledger::kLength;
    const Bytes read = stats.epochs[0].source_bytes + stats.epochs[1].source_bytes;
    if (with_disk) {
      EXPECT_EQ(read, all);
    } else {
      // The first epoch reads all, the second what has no home; a few samples pass from one to the other in transit.
      EXPECT_LE(read, 2 * all - stats.cached_bytes / 2);
      EXPECT_GT(stats.cached_bytes, 0u);
    }
  }
}

TEST(LoaderStorageTest, TheRecordOfARunGivesTheSameDecisionsAgain) {
  const Ledger ledger(kSamples);
  TestFolder disk;
  LoaderOptions options = ledger.options(32);
  options.memory = 5_MiB;
  options.disk = disk.path();
  options.epochs = 4;
  options.storage = "20MB/s,1ms";
  options.record = disk.path() + ".record";
  {
    Loader loader = open(options);
    EXPECT_TRUE(eventually([&] { return loader.stats().disk_used >= kSamples * Ledger::kLength / 2; }));
    Seen seen;
    for (Epoch e = 0; e < 2; ++e) ASSERT_TRUE(read_epoch(loader, seen));
    ASSERT_TRUE(loader.seek_epoch(2).ok());  // a new pacer
    for (Epoch e = 2; e < 4; ++e) ASSERT_TRUE(read_epoch(loader, seen));
    EXPECT_EQ(seen, reference(kSamples, options, 4));
  }
  auto events = read_event_record(options.record);
  ASSERT_TRUE(events.ok()) << events.error().message;
  const ReplayResult same = replay_pacing(*events);
  EXPECT_EQ(same.different, 0u) << same.first_difference;
  EXPECT_GT(same.decisions, kSamples);
  // It would notice another number of reads, and fills that are in the way of a batch.
  const auto different = [&](EventKind kind, const std::function<void(Event&)>& change) {
    std::vector<Event> changed = *events;
    for (Event& event : changed) {
      if (event.kind == kind) change(event);
    }
    return replay_pacing(changed).different;
  };
  EXPECT_GT(different(EventKind::kReadStarted, [](Event& event) { event.c += 128; }), 0u);
  EXPECT_GT(different(EventKind::kAsked, [](Event& event) { event.position = 1_GiB; }), 0u);
  std::filesystem::remove(options.record);
}

}  // namespace
}  // namespace foreload
