#include "report/element.h"

#include <gtest/gtest.h>

#include <limits>

#include "report/code_points.h"

namespace foreload {
namespace {

TEST(ElementTest, NoTextBecomesMarkup) {
  EXPECT_EQ(escaped("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;");
  EXPECT_EQ(Element("td").set("title", "\"><img src=x onerror=y>").text("</td>").to_string(),
            "<td title=\"&quot;&gt;&lt;img src=x onerror=y&gt;\">&lt;/td&gt;</td>");
}

TEST(ElementTest, ControlCharactersBecomePictures) {
  EXPECT_EQ(escaped(std::string_view("a\0b\x1b[31m\n\x7f", 10)), "a␀b␛[31m␊␡");
  EXPECT_EQ(escaped("\xC2\x85"), "\uFFFD") << "C1 controls have no picture";
}

TEST(ElementTest, NothingTurnsTheDirectionOfWhatFollows) {
  EXPECT_EQ(escaped("a\u202Egpj.exe"), "a\uFFFDgpj.exe");
  EXPECT_EQ(escaped("\u2066\u200F\u061C"), "\uFFFD\uFFFD\uFFFD");
}

TEST(ElementTest, WhatIsNoUtf8BecomesReplacementCharacters) {
  EXPECT_EQ(escaped("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(escaped("\xC0\xBC"), "\uFFFD\uFFFD") << "an overlong <";
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "beyond the last code point";
  EXPECT_EQ(escaped("\xE2\x82"), "\uFFFD\uFFFD") << "cut off";
  EXPECT_EQ(escaped("\xE2<"), "\uFFFD&lt;") << "the next character is not swallowed";
  EXPECT_EQ(escaped("\uFFFF"), "\uFFFD");
  EXPECT_EQ(escaped("Größe 大 🙂"), "Größe 大 🙂");
}

TEST(ElementTest, EveryByteIsAnsweredWithValidUtf8) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      const std::string out = escaped(text);
      EXPECT_EQ(utf8(code_points(out)), out);
      EXPECT_EQ(out.find_first_of("<>\"'"), std::string::npos);
      for (const char c : out) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20);
    }
  }
}

TEST(ElementTest, LongNamesLoseTheirMiddle) {
  const std::string name = "begin" + std::string(4096, 'x') + "end.jpg";
  const std::string out = escaped(name);
  EXPECT_EQ(code_points(out).size(), kLongestText);
  EXPECT_TRUE(out.starts_with("beginxxx") && out.ends_with("xxxend.jpg"));
  EXPECT_NE(out.find("…"), std::string::npos);
  EXPECT_EQ(escaped(name, name.size()), name);
  EXPECT_EQ(escaped("abc", 1), "…");
  EXPECT_EQ(escaped("abc", 0), "");
}

TEST(ElementTest, LinesAreKeptOnlyWhereAsked) {
  EXPECT_EQ(Element("pre").lines("a\n<b>\n").to_string(), "<pre>a\n&lt;b&gt;\n</pre>");
  EXPECT_EQ(Element("p").text("a\nb").to_string(), "<p>a␊b</p>");
}

TEST(ElementTest, PlacesHaveTwoDecimalsAndAreFinite) {
  EXPECT_EQ(Element("g").set("x", 1.23456).to_string(), "<g x=\"1.23\"></g>");
  EXPECT_EQ(Element("g").set("x", -0.001).to_string(), "<g x=\"0\"></g>");
  EXPECT_EQ(Element("g").set("x", std::numeric_limits<double>::quiet_NaN()).to_string(), "<g x=\"0\"></g>");
}

TEST(ElementTest, ChildrenStandInside) {
  EXPECT_EQ(Element("ul").add(Element("li").text("a")).add(Element("li")).to_string(), "<ul><li>a</li><li></li></ul>");
}

}  // namespace
}  // namespace foreload
