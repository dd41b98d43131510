#include "lab/presets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lab/sweep.h"

namespace foreload {
namespace {

TEST(PresetsTest, EveryPresetIsAClusterThatCanBeAndNamesItsSource) {
  std::set<std::string> names;
  for (const Preset& preset : presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_NE(std::string(preset.source), "");
    EXPECT_NE(std::string(preset.assumed), "");
    ASSERT_FALSE(preset.rows.empty());
    for (const PresetRow& row : preset.rows) {
      const auto setup = preset_setup(preset, row.changes);
      ASSERT_TRUE(setup.ok()) << preset.name << ": " << setup.error().message;
      EXPECT_TRUE(check_cluster(*setup).ok()) << preset.name << ": " << check_cluster(*setup).error().message;
      EXPECT_TRUE(find_system(row.system).ok());
      EXPECT_TRUE(find_system(row.baseline).ok());
    }
  }
  EXPECT_FALSE(find_preset("coordle").ok());
}

TEST(PresetsTest, ARangeIsMetBetweenItsEnds) {
  const PresetRow row{.what = "", .published = 1.5, .published_to = 2};
  EXPECT_EQ(ratio_to_published(row, 1.7), 1);
  EXPECT_NEAR(ratio_to_published(row, 3), 1.5, 1e-9);
  EXPECT_NEAR(ratio_to_published(row, 0.75), 0.5, 1e-9);
}

// What CoorDL measured of caches, and what eight jobs gain; `foreload simulate --all` has the others.
TEST(PresetsTest, FiguresOfOneServerFit) {
  const auto off = [](const char* name, std::size_t row) {
    const Preset& preset = **find_preset(name);
    const auto made = reproduce(preset, preset.rows[row]);
    EXPECT_TRUE(made.ok() && made->ahead) << name;
    return std::abs(ratio_to_published(preset.rows[row], made->simulated) - 1);
  };
  EXPECT_LT(off("coordl-misses", 0), 0.02);  // MinIO
  EXPECT_LT(off("coordl-misses", 1), 0.02);  // the page cache
  EXPECT_LT(off("coordl-search", 0), 0.15);
}

TEST(SweepTest, RangesAreDoubledOrCounted) {
  EXPECT_EQ(parse_sweep("hosts=1..16")->values, (std::vector<double>{1, 2, 4, 8, 16}));
  EXPECT_EQ(parse_sweep("hosts=1..512")->values.size(), 10u);
  EXPECT_EQ(parse_sweep("cores=2..5")->values, (std::vector<double>{2, 3, 4, 5}));
  EXPECT_EQ(parse_sweep("cache=8GB,0,4GB,4GB")->values, (std::vector<double>{0, 4e9, 8e9}));
  EXPECT_EQ(parse_sweep("cache=0..16GB")->values.size(), 17u);
  for (const char* text : {"hosts", "host=1..2", "hosts=", "hosts=4..2", "hosts=1..none", "hosts=a..b", "hosts=1,,x"}) {
    EXPECT_FALSE(parse_sweep(text).ok()) << text;
  }
}

TEST(SweepTest, TheKneeIsWhereMoreBringsNothing) {
  std::vector<CurvePoint> points;
  for (const double x : {1.0, 2.0, 4.0, 8.0, 16.0}) points.push_back({x, {.rate = std::min(x * 100, 500.0)}});
  EXPECT_EQ(find_knee(points), 8);
  points.pop_back();
  EXPECT_EQ(find_knee(points), std::nullopt);
}

TEST(SweepTest, AnEstimateGrowsWithWhatItIsOf) {
  ClusterSetup setup;
  const double small = estimate_seconds(setup);
  setup.epochs *= 10;
  EXPECT_NEAR(estimate_seconds(setup) / small, 10, 1e-6);
  setup.hosts = 512;
  setup.batch = 1;
  EXPECT_GT(estimate_seconds(setup), 10 * small);
}

}  // namespace
}  // namespace foreload
