#include "report/table.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

TEST(TableTest, CellsAreTextNumbersOrRanges) {
  const Table content{
      "Rates",
      {{"what", false}, {"value", true}, {"range", true}},
      {{"Storage",
        {{{"32 <at> once", {}}, {"", {{410, "410 MB/s", "/m/0/value"}}}, {"", {{1, "1", ""}, {2, "2", ""}}}}}}}};
  const std::string text = table(content).to_string();
  EXPECT_NE(text.find("<th scope=\"row\">32 &lt;at&gt; once</th>"), std::string::npos);
  EXPECT_NE(text.find("<td class=\"number\"><data value=\"410\" data-json=\"/m/0/value\">410 MB/s</data></td>"),
            std::string::npos);
  EXPECT_NE(text.find("<data value=\"1\">1</data>–<data value=\"2\">2</data>"), std::string::npos);
  EXPECT_NE(text.find("colspan=\"3\">Storage</th>"), std::string::npos);
  EXPECT_NE(text.find("<caption>Rates</caption>"), std::string::npos);
}

TEST(TableTest, MoreCellsThanColumnsAreNoHarm) {
  const std::string text = table({"", {}, {{"", {{{"a", {}}, {"b", {}}}}}}}).to_string();
  EXPECT_NE(text.find("<td>b</td>"), std::string::npos);
}

TEST(TableTest, AFoldedTableIsThereWithoutAScript) {
  const std::string text = folded_table("Numbers", {"n", {{"x", true}}, {}}).to_string();
  EXPECT_EQ(text.find("<details><summary>Numbers</summary><div"), 0u);
}

}  // namespace
}  // namespace foreload
