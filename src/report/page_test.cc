#include "report/page.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <regex>

#include "report/style.h"

namespace foreload {
namespace {

std::string sha256_base64(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EXPECT_EQ(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr), 1);
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> encoded{};
  const int length = EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(size));
  return {reinterpret_cast<const char*>(encoded.data()), static_cast<std::size_t>(length)};
}

std::string sample_page() {
  Page page("T </title><script>");
  page.begin("about <x>", "finding & more", Element("p").text("lead"));
  page.section("one", "Heading", "Intro", Element("div").text("content"));
  page.end("footer");
  return page.to_string();
}

TEST(PageTest, ThePolicyKnowsTheStyleSheetAndTheScript) {
  EXPECT_EQ(kPageStyleHash, sha256_base64(kPageStyle)) << "write it into src/report/style.cc";
  EXPECT_EQ(kPageScriptHash, sha256_base64(kPageScript)) << "write it into src/report/style.cc";
  const std::string text = sample_page();
  EXPECT_NE(text.find("<style>" + std::string(kPageStyle) + "</style>"), std::string::npos);
  EXPECT_NE(text.find("<script>" + std::string(kPageScript) + "</script>"), std::string::npos);
}

TEST(PageTest, NothingComesFromElsewhere) {
  const std::string text = sample_page();
  EXPECT_NE(text.find("default-src 'none'"), std::string::npos);
  for (const char* const word : {"unsafe", "http://", "https://", "@import", "<link", "<img", "<iframe", " src="}) {
    EXPECT_EQ(text.find(word), std::string::npos) << word;
  }
  const std::regex elsewhere("url\\((?!#)");
  EXPECT_FALSE(std::regex_search(text, elsewhere));
  const std::regex handlers(" (on[a-z]+|style)=\"");
  EXPECT_FALSE(std::regex_search(text, handlers)) << "the policy would refuse it";
}

TEST(PageTest, TextIsEscapedEverywhere) {
  const std::string text = sample_page();
  EXPECT_NE(text.find("<title>T &lt;/title&gt;&lt;script&gt;</title>"), std::string::npos);
  EXPECT_NE(text.find("about &lt;x&gt;"), std::string::npos);
  EXPECT_NE(text.find("<h1>finding &amp; more</h1>"), std::string::npos);
}

TEST(PageTest, ACommandIsOneLineWhateverItsLength) {
  const std::string name(4096, 'n');
  const std::string text = command_block("foreload index " + name + "\nrm x", Language::kShell).to_string();
  EXPECT_NE(text.find(name), std::string::npos) << "what is copied has to be whole";
  EXPECT_EQ(text.find('\n'), std::string::npos) << "pasted, it would run";
  EXPECT_NE(command_block("a\nb", Language::kPython).to_string().find("a\nb"), std::string::npos);
}

}  // namespace
}  // namespace foreload
