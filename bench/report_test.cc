#include "report.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

TEST(BenchReportTest, WhatCanNotBeMeasuredIsARowWithItsReason) {
  BenchReport report;
  report.add("a", 2, "ratio", 1, true, "measured");
  report.skip("b", "fio is not installed");
  const auto rows = nlohmann::json::parse(report.to_json());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["name"], "b");
  EXPECT_TRUE(rows[1]["value"].is_null());
  EXPECT_EQ(rows[1]["how"], "skipped: fio is not installed");
  EXPECT_EQ(rows[1]["goal"], "-") << "it counts neither as met nor as missed";
  EXPECT_EQ(rows[1].size(), rows[0].size());
  EXPECT_EQ(report.print(false), 0);
}

TEST(BenchReportTest, NamesThatAreNoUtf8AreStillJson) {
  BenchReport report;
  report.skip("b", "cannot open photos\xff");
  EXPECT_TRUE(nlohmann::json::accept(report.to_json()));
}

}  // namespace
}  // namespace foreload
