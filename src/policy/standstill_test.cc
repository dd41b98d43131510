#include "policy/standstill.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

using namespace std::chrono_literals;

// How long it takes until the patience is over, at most a minute, when every look sees the same.
Duration patience(PrepLook look, Standstill still = {}, Duration step = Standstill::kLook) {
  const Time begin = look.now = Time(1h);
  while (!still.lasts(look) && look.now - begin < 1min) look.now += step;
  return look.now - begin;
}

TEST(StandstillTest, WithoutWorkersItIsOverAfterTwoSeconds) {
  EXPECT_EQ(patience({.ready = true}), 2s);
  EXPECT_EQ(patience({.ready = true, .late = true, .prepared = 7}), 2s);
}

TEST(StandstillTest, WorkersThatLeaveTheNextBatchHaveTenSeconds) {
  EXPECT_EQ(patience({.ready = true, .late = true, .staffed = true}), 10s);
}

TEST(StandstillTest, WorkersMayLeaveWhatTheLearnerDoesNotNeedNext) {
  EXPECT_GE(patience({.ready = true, .staffed = true}), 1min);
}

TEST(StandstillTest, ThereIsNoneWhileThereIsNothingToDo) {
  EXPECT_GE(patience({}), 1min);
}

TEST(StandstillTest, EverySampleThatIsPreparedEndsIt) {
  Standstill still;
  for (std::uint64_t i = 0; i < 300; ++i) {
    ASSERT_FALSE(still.lasts({.now = Time(i * 200ms), .ready = true, .late = true, .prepared = i / 9}));
  }
}

TEST(StandstillTest, AWorkerThatComesInTimeIsWaitedFor) {
  Standstill still;
  PrepLook look{.now = Time(1h), .ready = true, .late = true};
  for (; look.now < Time(1h + 1900ms); look.now += 100ms) ASSERT_FALSE(still.lasts(look));
  look.staffed = true;
  EXPECT_FALSE(still.lasts(look));
  look.now += 1s;
  EXPECT_FALSE(still.lasts(look));
}

TEST(StandstillTest, WhoWasStoppedHimselfDoesNotCountThatTime) {
  Standstill still;
  EXPECT_FALSE(still.lasts({.now = Time(1h), .ready = true}));
  EXPECT_FALSE(still.lasts({.now = Time(2h), .ready = true}));
  EXPECT_FALSE(still.lasts({.now = Time(1h), .ready = true}));  // nor does a clock that goes back harm
}

}  // namespace
}  // namespace foreload
