// The layout of --help: CLI11's, with descriptions broken into lines that fit a terminal of 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace foreload {

constexpr std::size_t kHelpColumns = 80;

// `text` with line breaks instead of blanks, so that no line has more than `columns` characters, if words allow.
std::string wrapped(const std::string& text, std::size_t columns);

class HelpLayout : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
};

}  // namespace foreload
