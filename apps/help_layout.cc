#include "help_layout.h"

#include <algorithm>
#include <sstream>

namespace foreload {

namespace {

// Characters of UTF-8: bytes that do not continue one.
std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t columns) {
  std::istringstream words(text);
  std::string result;
  std::size_t used = 0;
  for (std::string word; words >> word;) {
    const std::size_t length = characters(word);
    const bool fits = used + 1 + length <= columns;
    if (used > 0) result += fits ? ' ' : '\n';
    used = used > 0 && fits ? used + 1 + length : length;
    result += word;
  }
  return result;
}

std::string HelpLayout::make_option_desc(const CLI::Option* option) const {
  return wrapped(option->get_description(), kHelpColumns - get_column_width());
}

std::string HelpLayout::make_subcommand(const CLI::App* command) const {
  std::ostringstream line;
  CLI::detail::format_help(line, command->get_display_name(true),
                           wrapped(command->get_description(), kHelpColumns - get_column_width()), get_column_width());
  return line.str();
}

std::string HelpLayout::make_description(const CLI::App* app) const {
  return wrapped(CLI::Formatter::make_description(app), kHelpColumns) + "\n";
}

}  // namespace foreload
