// Page: one self-contained HTML file. It needs no network and may not use any (its policy allows its own style sheet
// and script, by their hashes, and nothing else), shows everything without the script, and follows the reader's choice
// of a light or dark screen. The script adds buttons that copy commands.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "report/element.h"

namespace foreload {

// What stands between the page's header and its end.
class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  // The header: where from, the finding in one sentence, and what else is to be known first.
  void begin(const std::string& about, const std::string& finding, const Element& lead);
  // `id` is a word of the program; `intro` may be empty.
  void section(std::string_view id, const std::string& heading, const std::string& intro, const Element& content);
  void end(const std::string& footer);

  std::string to_string() const;

 private:
  std::string title_;
  Element body_{"main"};
};

enum class Language { kShell, kPython };

// A command to copy: as it is typed, whatever its length.
Element command_block(const std::string& command, Language language);

}  // namespace foreload
