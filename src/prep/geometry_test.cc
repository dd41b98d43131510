#include "prep/geometry.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

Geometry begun(Dimensions size) {
  Geometry geometry;
  geometry.begin(size);
  return geometry;
}

TEST(AxisViewTest, CutsAndMirroringsCompose) {
  AxisView view = AxisView::whole(10);
  view.cut(2, 6);  // 2 3 4 5 6 7
  view.mirror();   // 7 6 5 4 3 2
  view.cut(1, 3);  // 6 5 4
  EXPECT_EQ(view.in_parent({0, 3}), (Interval{4, 7}));
  EXPECT_EQ(view.in_parent({0, 1}), (Interval{6, 7}));
  view.mirror();  // 4 5 6
  EXPECT_FALSE(view.mirrored);
  EXPECT_EQ(view.in_parent({0, 1}), (Interval{4, 5}));
}

TEST(AxisViewTest, PlacesOutsideStayBlackThroughLaterCuts) {
  AxisView view = AxisView::whole(4);
  view.cut(-2, 10);  // . . 0 1 2 3 . . . .
  EXPECT_EQ(view.valid, (Interval{2, 6}));
  view.mirror();  // . . . . 3 2 1 0 . .
  EXPECT_EQ(view.valid, (Interval{4, 8}));
  view.cut(3, 4);  // . 3 2 1
  EXPECT_EQ(view.valid, (Interval{1, 4}));
  EXPECT_EQ(view.in_parent({0, 4}), (Interval{1, 4}));
  view.cut(-20, 10);
  EXPECT_EQ(view.valid.size(), 0);
  EXPECT_EQ(view.in_parent({0, 10}).size(), 0);
}

TEST(GeometryTest, OnlyWhatTheCropNeedsIsDecoded) {
  Geometry geometry = begun({1000, 500});
  ASSERT_TRUE(geometry.resize({500, 250}));
  ASSERT_TRUE(geometry.cut(100, 50, {10, 20}));
  geometry.settle();
  // Twice the size, and up to two pixels of the filter on each side.
  EXPECT_EQ(geometry.source_box(), (Box{199, 99, 22, 42}));
}

TEST(GeometryTest, ResizeToTheSameSizeIsNothing) {
  Geometry geometry = begun({30, 20});
  ASSERT_TRUE(geometry.resize({30, 20}));
  EXPECT_TRUE(geometry.steps().empty());
}

TEST(GeometryTest, NothingVisibleMeansNothingDecoded) {
  Geometry geometry = begun({30, 20});
  ASSERT_TRUE(geometry.cut(100, 0, {10, 10}));
  ASSERT_TRUE(geometry.resize({5, 5}));
  geometry.settle();
  EXPECT_EQ(geometry.source_box(), (Box{0, 0, 0, 0}));
}

TEST(GeometryTest, ImpossibleSizesAreRefused) {
  Geometry geometry = begun({30, 20});
  EXPECT_FALSE(geometry.resize({0, 5}));
  EXPECT_FALSE(geometry.resize({5, 0x80000000u}));
  EXPECT_FALSE(geometry.cut(0, 0, {0, 1}));
}

}  // namespace
}  // namespace foreload
