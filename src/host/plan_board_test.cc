#include "host/plan_board.h"

#include <gtest/gtest.h>

#include <random>

#include "host/host_testing.h"

namespace foreload {
namespace {

JoinOptions join() {
  return {.budget = 64_MiB, .at_step = nullptr};
}

class PlanBoardTest : public testing::Test {
 protected:
  PlanBoardTest() : member_(*Member::join(host_, join())) {}
  std::unique_ptr<PlanBoard> open(std::uint64_t key = 1, std::uint64_t samples = 10) {
    return std::move(*PlanBoard::open(member_, key, samples));
  }

  const std::string host_ = fresh_host();
  std::shared_ptr<Member> member_;
};

TEST_F(PlanBoardTest, WhatOnePlansAllFind) {
  const auto first = open();
  const auto second = open();
  const auto other = open(2);
  std::vector<std::uint32_t> offsets(10);
  for (std::uint64_t number = 0; number < 2000; ++number) {
    std::vector<std::uint32_t> planned(number % 10 + 1);
    for (std::size_t i = 0; i < planned.size(); ++i) planned[i] = static_cast<std::uint32_t>(number * 31 + i);
    offsets.resize(planned.size());
    EXPECT_FALSE(first->find(number, offsets));
    first->put(number, planned);
    EXPECT_TRUE(second->find(number, offsets));
    EXPECT_EQ(offsets, planned);
    EXPECT_FALSE(other->find(number, offsets)) << "of another plan";
    EXPECT_FALSE(second->find(number + 1, offsets)) << "not planned";
  }
}

TEST_F(PlanBoardTest, WhatTheDeadBeganIsPlannedByTheNextAndWhatIsWrongByNobodyBelieved) {
  FORELOAD_SKIP_UNDER_TSAN();
  const auto board = open();
  std::vector<std::uint32_t> offsets(4);
  {
    HostChild child([&](const HostChild::Tell& tell, int until) {
      auto member = Member::join(host_, join());
      auto its = PlanBoard::open(*member, 1, 10);
      std::vector<std::uint32_t> none(4);
      tell({.what = (*its)->find(7, none) ? 2 : 1});  // about to plan it
      wait_readable(std::array{until}, kNever);
    });
    ASSERT_EQ(child.next().value_or(Told{}).what, 1);
    EXPECT_FALSE(board->find(7, offsets)) << "waited a little for whoever plans it";
    board->put(7, std::vector<std::uint32_t>{1, 2, 3, 4});
    EXPECT_FALSE(board->find(7, offsets)) << "it is the other one's to share";
  }
  EXPECT_FALSE(board->find(7, offsets));
  board->put(7, std::vector<std::uint32_t>{1, 2, 3, 4});
  EXPECT_TRUE(board->find(7, offsets));

  std::span<std::byte> bytes;
  for (const ObjectInfo& object : member_->control().objects()) {
    if (object.key.kind == ObjectKey::Kind::kPlans) bytes = (*member_->fetch(object.id))->memory().bytes();
  }
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t number = random() % 1000;
    if (!board->find(number, offsets)) board->put(number, std::vector<std::uint32_t>{1, 2, 3, 4});
    bytes[random() % 4096] = static_cast<std::byte>(random());
    std::vector<std::uint32_t> found(4);
    EXPECT_TRUE(!board->find(number, found) || found == (std::vector<std::uint32_t>{1, 2, 3, 4}));
  }
}

}  // namespace
}  // namespace foreload
