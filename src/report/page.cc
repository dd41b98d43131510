#include "report/page.h"

#include <fmt/format.h>

#include "report/style.h"

namespace foreload {

namespace {

constexpr std::size_t kLongestCommand = 16'384;

// Fills of the tones, for the whole page. They stand in a picture of no size: one that is not displayed would not be
// found.
constexpr std::string_view kPatterns =
    R"svg(<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>
<pattern id="pattern-2" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8"/><circle cx="2" cy="2" r="1.4"/><circle cx="6" cy="6" r="1.4"/></pattern>
<pattern id="pattern-3" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="7" height="7"/><rect class="ink" width="3.2" height="7"/></pattern>
<pattern id="pattern-4" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8"/><path d="M0 4H8M4 0V8"/></pattern>
</defs></svg>)svg";

std::string policy() {
  return fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
      kPageStyleHash, kPageScriptHash);
}

}  // namespace

void Page::begin(const std::string& about, const std::string& finding, const Element& lead) {
  Element header("header");
  header.add(Element("p").set("class", "about").text(about)).add(Element("h1").text(finding)).add(lead);
  body_.add(header);
}

void Page::section(std::string_view id, const std::string& heading, const std::string& intro, const Element& content) {
  Element part("section");
  part.set("id", id).add(Element("h2").text(heading));
  if (!intro.empty()) part.add(Element("p").set("class", "intro").text(intro, 2 * kLongestText));
  body_.add(part.add(content));
}

void Page::end(const std::string& footer) {
  body_.add(Element("footer").add(Element("p").text(footer)));
}

std::string Page::to_string() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}\n{}\n<script>{}</script>\n</body>\n</html>\n",
      policy(), escaped(title_), kPageStyle, kPatterns, body_.to_string(), kPageScript);
}

Element command_block(const std::string& command, Language language) {
  Element code("code");
  if (language == Language::kPython) {
    code.lines(command, kLongestCommand);
  } else {
    // On one line: pasted into a terminal, an end of line would run what stands before it.
    code.text(command, kLongestCommand);
  }
  Element block("div");
  block.set("class", "command").set("data-language", language == Language::kPython ? "python" : "shell");
  return block.add(Element("pre").add(code));
}

}  // namespace foreload
