#include "report/text_width.h"

#include <gtest/gtest.h>

#include <string>

namespace foreload {
namespace {

// Widths of DejaVu Sans at size 1, among the widest of the usual fonts, as its metrics say.
TEST(TextWidthTest, IsNoLessThanAWideFontIs) {
  EXPECT_GE(text_width("0123456789", 1), 6.36);
  EXPECT_GE(text_width("you are here", 1), 6.98);
  EXPECT_GE(text_width("%", 1), 0.95);
  EXPECT_GE(text_width("m", 1), 0.974);
  EXPECT_GE(text_width("W", 1), 0.989);
  EXPECT_GE(text_width(" ", 1), 0.318);
}

TEST(TextWidthTest, ShortensUntilItFits) {
  EXPECT_EQ(fitted("GB", 12, 100), "GB");
  for (const char* const text :
       {"accelerators per host", "mmmmmmmmmmmmmmmmmmmmmm", "大大大大大大大大大大大", "iiiiiiiiiiiiiiiii"}) {
    for (double width = -5; width < 140; width += 3) {
      EXPECT_LE(text_width(fitted(text, 12, width), 12), std::max(width, 0.0)) << text;
    }
  }
  EXPECT_EQ(fitted("accelerators", 12, 1), "");
  EXPECT_EQ(fitted(std::string(4096, 'x'), 12, 100).find("xx"), 0u);
}

}  // namespace
}  // namespace foreload
