#include "loader/accounts.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(AccountsTest, AWaitIsFetchUntilTheLastBytesAreThereAndPrepAfterwards) {
  EXPECT_EQ(split_wait(10ms, 30ms, 18ms).fetch, 8ms);
  EXPECT_EQ(split_wait(10ms, 30ms, 18ms).prep, 12ms);
  EXPECT_EQ(split_wait(10ms, 30ms, 5ms).fetch, 0ms) << "the bytes were there before";
  EXPECT_EQ(split_wait(10ms, 30ms, 40ms).prep, 0ms);
}

TEST(AccountsTest, EpochsAreKeptApartAndTheListIsBounded) {
  Accounts accounts;
  const std::vector<SampleId> padded{17};
  for (Epoch e = 0; e < 3000; ++e) {
    accounts.begin_epoch(e, 1s * e);
    accounts.add_batch(
        64, padded,
        {.bytes = {.memory = 10, .disk = 5, .source = 20, .filled = 7}, .prep_busy = 3ms, .replaced = 1, .damaged = 2},
        {1ms, 2ms});
    accounts.add_batch(64, {}, {.bytes = {.memory = 10}}, {});
    accounts.end_epoch(1s * e + 500ms);
  }
  const auto list = accounts.list(4000s);
  EXPECT_LE(list.size(), 1025u);
  const EpochStats& last = list.back();
  EXPECT_EQ(last.epoch, 2999u);
  EXPECT_EQ(last.samples, 128u);
  EXPECT_EQ(last.batches, 2u);
  EXPECT_EQ(last.padded, padded);
  EXPECT_EQ(last.replaced, 1u);
  EXPECT_EQ(last.damaged, 2u);
  EXPECT_EQ(last.memory_bytes, 20u);
  EXPECT_EQ(last.disk_bytes, 5u);
  EXPECT_EQ(last.source_bytes, 20u);
  EXPECT_EQ(last.filled_bytes, 7u);
  EXPECT_EQ(last.wall, 500ms);
  EXPECT_EQ(last.fetch_stall, 1ms);
  EXPECT_EQ(last.prep_stall, 2ms);
}

}  // namespace
}  // namespace foreload
