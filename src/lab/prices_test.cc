#include "lab/prices.h"

#include <gtest/gtest.h>

#include "lab/lab_testing.h"

namespace foreload {
namespace {

constexpr const char* kFile =
    "# by the hour\ncurrency = EUR\ncore_hour = 0.04\n gb_hour=0.005 # memory\n\ngpu_hour = 2.5";

Budget beside(Bytes overhead) {
  return [overhead](Bytes cache) { return cache + overhead; };
}

TEST(PricesTest, LinesOfKeysAndValues) {
  const auto prices = parse_prices(kFile, "prices");
  ASSERT_TRUE(prices.ok()) << prices.error().message;
  EXPECT_EQ(prices->currency, "EUR");
  EXPECT_EQ(prices->core_hour, 0.04);
  EXPECT_EQ(prices->gb_hour, 0.005);
  EXPECT_EQ(prices->gpu_hour, 2.5);
}

TEST(PricesTest, WrongFilesAreRefusedWithTheLine) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "has no core_hour"},
           {"core_hour", "line 1: \"core_hour\""},
           {"\ncore_hour = cheap", "line 2: \"cheap\" is no price"},
           {"core_hour = -1", "\"-1\" is no price"},
           {"core_hour = nan", "is no price"},
           {"core_hour = 1e99", "is no price"},
           {"core_hour = 1 EUR", "is no price"},
           {"core_hour = 1\ncore_hour = 2", "line 2: core_hour stands there twice"},
           {"disk_hour = 1", "\"disk_hour\" is unknown"},
           {"currency =", "short word"},
           {"core_hour = 1\ngb_hour = 1\ngpu_hour = 1", "has no currency"},
       }) {
    const auto prices = parse_prices(text, "prices.txt");
    ASSERT_FALSE(prices.ok()) << text;
    EXPECT_EQ(prices.error().code, Code::kInvalid);
    EXPECT_NE(prices.error().message.find(words), std::string::npos) << prices.error().message;
    EXPECT_NE(prices.error().message.find("prices.txt"), std::string::npos);
  }
}

// 4 cores, 1 GB, one accelerator: 0.16 + 0.005 + 2.5 per hour, 400 samples per second.
TEST(PricesTest, CostIsTheHourByTheSamplesOfIt) {
  const Prices prices{"EUR", 0.04, 0.005, 2.5};
  const Model model(round_numbers(), round_setup());
  const auto cost = cost_of(model, prices, round_setup(), beside(1'000'000'000));
  ASSERT_TRUE(cost.has_value());
  EXPECT_NEAR(cost->per_hour, 2.665, 1e-9);
  EXPECT_NEAR(cost->per_million_samples, 2.665 / (400 * 3600) * 1e6, 1e-9);
}

// Half of the dataset in the page cache is half a gigabyte that somebody pays for.
TEST(PricesTest, ThePageCacheIsMemoryLikeAnyOther) {
  const Prices prices{"EUR", 0.04, 0.005, 2.5};
  Measured measured = round_numbers();
  measured.page_cache = sure(5e9);
  JobSetup setup = round_setup();
  setup.page_cache = 500'000'000;
  const Model model(measured, setup);
  EXPECT_NEAR(cost_of(model, prices, setup, beside(0))->memory_gb, 0.5, 1e-6);
  setup.page_cache = 4'000'000'000;  // of which one is used
  EXPECT_NEAR(cost_of(model, prices, setup, beside(0))->memory_gb, 1, 1e-6);
  // The cheapest does not count on memory that it does not pay for.
  const auto best = cheapest(Model(measured, setup), prices, beside(0));
  ASSERT_TRUE(best.has_value());
  EXPECT_NEAR(best->memory_gb, 1 - 400.0 / 950, 1e-4);
}

// 950/s need two cores and 1 − 400/950 = 57.9 % of the dataset in memory.
TEST(PricesTest, TheCheapestHasNoMoreThanItNeeds) {
  const Prices prices{"EUR", 0.04, 0.005, 2.5};
  const auto best = cheapest(Model(round_numbers(), round_setup()), prices, beside(100'000'000));
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->setup.cores, 2u);
  EXPECT_NEAR(best->memory_gb, 0.1 + 1 - 400.0 / 950, 1e-4);
  EXPECT_NEAR(best->busy, 0.95, 1e-4);
}

// One core of crop-addressable records instead of two, and less to read.
TEST(PricesTest, ItConvertsWhereThatIsCheaper) {
  const FormCosts forms{.raw = {0.002, 100e3}, .record = {}, .crop_addressable = {0.001, 100e3, {{40e6, sure(0.5)}}}};
  const Prices prices{"EUR", 0.04, 0.005, 2.5};
  const auto best = cheapest(Model(round_numbers(), round_setup(), forms), prices, beside(0));
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->setup.form, Form::kCropAddressable);
  EXPECT_EQ(best->setup.cores, 1u);
}

TEST(PricesTest, WithoutAnAcceleratorNothingIsBusy) {
  Measured measured = round_numbers();
  measured.accelerator = {};
  EXPECT_FALSE(cheapest(Model(measured, round_setup()), {"EUR", 1, 1, 1}, beside(0)).has_value());
}

}  // namespace
}  // namespace foreload
