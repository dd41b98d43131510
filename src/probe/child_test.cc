#include "probe/child.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>

#include "base/clock.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(ChildTest, WhatItPrintsArrivesWhole) {
  const auto text = output_of({"seq", "1", "20000"});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->size(), 108'894u);
  EXPECT_TRUE(text->ends_with("\n20000\n"));
}

TEST(ChildTest, MoreOutputThanIsKeptDoesNotBlockIt) {
  const auto text = output_of({"head", "-c", "3000000", "/dev/zero"});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->size(), 1u << 20);
}

TEST(ChildTest, FailingAndMissingProgramsAreToldApart) {
  EXPECT_EQ(output_of({"false"}).error().code, Code::kIo);
  EXPECT_EQ(output_of({"no-such-program-of-ours"}).error().code, Code::kNotFound);
}

TEST(ChildTest, EndsWithItsInput) {
  auto child = Child::start({"sh", "-c", "echo ready; cat; echo done"});
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_EQ(child->read_line(), "ready");
  std::string rest;
  EXPECT_EQ(child->finish(rest), 0);
  EXPECT_EQ(rest, "done\n");
}

TEST(ChildTest, IsToldAndAnswersByLines) {
  auto child = Child::start({"cat"});
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_TRUE(child->write_line("one"));
  EXPECT_TRUE(child->write_line(""));
  EXPECT_EQ(child->read_line(now() + 20s), "one");
  EXPECT_EQ(child->read_line(now() + 20s), "");
  EXPECT_EQ(child->read_line(now() + 10ms), std::nullopt);
}

TEST(ChildTest, OneThatEndedNeitherAnswersNorEndsThisProgram) {
  auto child = Child::start({"true"});
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_EQ(child->read_line(now() + 20s), std::nullopt);
  std::string rest;
  EXPECT_EQ(child->finish(rest), 0);
  EXPECT_FALSE(child->write_line("anybody there?"));
}

TEST(ChildTest, OneThatDoesNotEndIsKilled) {
  auto child = Child::start({"sleep", "1000"});
  ASSERT_TRUE(child.ok()) << child.error().message;
  const pid_t id = child->id();
  child->end(now() + 5ms);
  EXPECT_EQ(child->id(), -1);
  EXPECT_EQ(::waitpid(id, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace foreload
