#include "probe/child.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

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

}  // namespace
}  // namespace foreload
