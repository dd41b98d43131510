#include "probe/sleeping_op.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "prep/chain.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(SleepingOpTest, TakesBytesOverRateAndDeliversTheBeginning) {
  add_sleeping_op();
  const auto chain = Chain::compile({.transforms = {sleeping(1e6)}});
  ASSERT_TRUE(chain.ok()) << chain.error().message;
  std::vector<std::byte> sample(20'000, std::byte{7});
  std::vector<std::byte> out(chain->output().bytes());
  ChainRunner runner(*chain);
  const Time start = now();
  ASSERT_TRUE(runner.begin(sample, {}).ok());
  ASSERT_TRUE(runner.finish(out).ok());
  EXPECT_GE(now() - start, 20ms);
  EXPECT_EQ(runner.length(), out.size());
  EXPECT_EQ(out.back(), std::byte{7});
}

TEST(SleepingOpTest, ItsTextIsReadAsOthersAre) {
  add_sleeping_op();
  const std::vector<Transform> chain{sleeping(250'000)};
  const auto read = parse_chain(chain_text(chain));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, chain);
  EXPECT_FALSE(parse_chain("sleeping(rate=0)").ok());
}

TEST(SleepingOpTest, IsInTheTableOnceHoweverOftenItIsAdded) {
  add_sleeping_op();
  const auto known = parse_chain("nothing_of_this_name").error().message;
  add_sleeping_op();
  EXPECT_EQ(parse_chain("nothing_of_this_name").error().message, known);
}

}  // namespace
}  // namespace foreload
