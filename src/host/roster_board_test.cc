#include "host/roster_board.h"

#include <gtest/gtest.h>

#include <random>

#include "host/host_testing.h"

namespace foreload {
namespace {

JoinOptions join() {
  return {.budget = 64_MiB, .at_step = nullptr};
}

Roster roster_of(Bytes memory) {
  return *Roster::create({{.name = "a:7433", .learners = 2, .memory = memory, .rates = {}},
                          {.name = "b:7433", .learners = 1, .memory = 2 * memory, .disk = 5, .rates = {}}});
}

class RosterBoardTest : public testing::Test {
 protected:
  RosterBoardTest() : member_(*Member::join(host_, join())) {}

  const std::string host_ = fresh_host();
  std::shared_ptr<Member> member_;
};

TEST_F(RosterBoardTest, MembersReadWhatTheAgentPublished) {
  EXPECT_FALSE(RosterBoard::find(*member_));
  auto board = RosterBoard::post(member_, 2);
  ASSERT_TRUE(board.ok()) << board.error().message;
  board->say("waiting for b:7433");
  const auto found = RosterBoard::find(*member_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->said(), "waiting for b:7433");
  EXPECT_FALSE(found->read());
  EXPECT_TRUE(found->has_agent(member_->control()));

  ASSERT_TRUE(board->publish({roster_of(1000), 1}).ok());
  const auto job = found->read();
  ASSERT_TRUE(job);
  EXPECT_EQ(job->self, 1u);
  EXPECT_EQ(job->roster.hash(), roster_of(1000).hash());
  EXPECT_EQ(job->roster.hosts()[1].name, "b:7433");
}

TEST_F(RosterBoardTest, ThereIsOneAgentAndOneRoster) {
  auto board = RosterBoard::post(member_, 2);
  ASSERT_TRUE(board.ok());
  EXPECT_EQ(RosterBoard::post(member_, 2).error().code, Code::kMismatch);
  ASSERT_TRUE(board->publish({roster_of(1000), 0}).ok());
  EXPECT_TRUE(board->publish({roster_of(1000), 0}).ok()) << "the same once more";
  EXPECT_EQ(board->publish({roster_of(2000), 0}).error().code, Code::kMismatch);
  EXPECT_EQ(board->publish({roster_of(1000), 1}).error().code, Code::kMismatch);
}

TEST_F(RosterBoardTest, AFailureIsToldUntilAnotherAgentComes) {
  FORELOAD_SKIP_UNDER_TSAN();
  member_.reset();  // a child of a process with threads could not have its own
  std::optional<RosterBoard> board;
  {
    HostChild agent([&](const HostChild::Tell& tell, int until) {
      auto member = Member::join(host_, join());
      auto posted = RosterBoard::post(*member, 2);
      posted->fail("b:7433 is another job's");
      tell({.what = posted.ok() ? 1 : 0});
      wait_readable(std::array{until}, kNever);
    });
    ASSERT_EQ(agent.next().value_or(Told{}).what, 1);
    member_ = *Member::join(host_, join());
    board = RosterBoard::find(*member_);
    ASSERT_TRUE(board);
    EXPECT_TRUE(board->has_failed() && board->has_agent(member_->control()));
    EXPECT_EQ(board->said(), "b:7433 is another job's");
  }
  EXPECT_FALSE(board->has_agent(member_->control())) << "it was killed";
  auto again = RosterBoard::post(member_, 2);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_FALSE(board->has_failed());
  EXPECT_FALSE(RosterBoard::post(member_, 200).ok());
}

TEST_F(RosterBoardTest, WhateverStandsThereIsARosterOrNone) {
  auto board = RosterBoard::post(member_, 3);
  ASSERT_TRUE(board.ok() && board->publish({roster_of(1000), 0}).ok());
  ObjectId id = 0;
  for (const ObjectInfo& object : member_->control().objects()) {
    if (object.key.kind == ObjectKey::Kind::kRoster) id = object.id;
  }
  const std::span<std::byte> bytes = (*member_->fetch(id))->memory().bytes();
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t at = 16 + random() % (i % 2 == 0 ? 32 : bytes.size() - 16);  // not who has it
    bytes[at] = static_cast<std::byte>(random() % 3 == 0 ? 0 : random());
    if (const auto job = board->read()) {
      EXPECT_LT(job->self, job->roster.hosts().size());
      EXPECT_LE(job->roster.hosts().size(), 16u);
    }
    for (const char letter : board->said()) EXPECT_GE(static_cast<unsigned char>(letter), ' ');
  }
}

}  // namespace
}  // namespace foreload
