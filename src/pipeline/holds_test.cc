#include "pipeline/holds.h"

#include <gtest/gtest.h>

#include <memory>

namespace foreload {
namespace {

constexpr Bytes kLength = 1000;

class HoldsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Arena::create({.samples = 10, .transit = 10 * Arena::footprint(kLength)});
    ASSERT_TRUE(made.ok());
    arena_ = std::move(*made);
  }

  Lease land(SampleId id) {
    EXPECT_TRUE(arena_->begin(id, kLength, Area::kTransit));
    return arena_->commit(id, kLength);
  }
  void ask_and_keep(Holds& holds, SampleId id) {
    holds.asked(id);
    if (holds.wants(id, kLength)) holds.keep(id, land(id));
  }

  std::unique_ptr<Arena> arena_;
};

TEST_F(HoldsTest, ASampleIsHeldUntilItsLastRepeatIsAskedFor) {
  Holds holds(3, 1_MiB);
  ask_and_keep(holds, 4);
  EXPECT_TRUE(arena_->is_transit(4));
  EXPECT_FALSE(holds.wants(4, kLength)) << "one hold is enough";
  holds.asked(4);
  EXPECT_TRUE(arena_->is_transit(4));
  holds.asked(4);
  EXPECT_TRUE(arena_->is_absent(4));
  EXPECT_FALSE(holds.wants(4, kLength));
  EXPECT_FALSE(holds.drop());
}

TEST_F(HoldsTest, AnotherBlockOrEpochEndsThem) {
  Holds holds(2, 1_MiB);
  holds.enter(0, 5);
  ask_and_keep(holds, 1);
  holds.enter(0, 5);
  EXPECT_TRUE(arena_->is_transit(1));
  holds.enter(0, 6);
  EXPECT_TRUE(arena_->is_absent(1));
  ask_and_keep(holds, 1);
  holds.enter(1, 6);
  EXPECT_TRUE(arena_->is_absent(1));
  holds.asked(1);
  EXPECT_TRUE(holds.wants(1, kLength)) << "counting begins anew";
}

TEST_F(HoldsTest, TheyNeverTakeMoreThanTheirLimit) {
  Holds holds(2, 3 * Arena::footprint(kLength));
  for (SampleId id = 0; id < 5; ++id) ask_and_keep(holds, id);
  for (SampleId id = 0; id < 5; ++id) EXPECT_EQ(arena_->is_transit(id), id < 3);
  holds.asked(0);  // for the last time
  EXPECT_TRUE(holds.wants(3, kLength));
  EXPECT_TRUE(holds.drop());
  for (SampleId id = 0; id < 5; ++id) EXPECT_TRUE(arena_->is_absent(id));
}

TEST_F(HoldsTest, WithoutEchoNothingIsHeld) {
  Holds holds(1, 1_MiB);
  holds.asked(1);
  EXPECT_FALSE(holds.wants(1, kLength));
}

}  // namespace
}  // namespace foreload
