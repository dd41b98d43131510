// The frame of the command line. A command declares its options with CLI11 and does its work in `run`,
// which answers with the body of the JSON report or an error; everything around it (output, exit
// code, signals) is here, alike for all commands.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "foreload/result.h"
#include "source/warnings.h"
#include "streams.h"

namespace foreload {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kLongestLine = 4000;  // of what is printed

// What a command may print. With --json, standard output holds one JSON object and nothing else.
class Output {
 public:
  Output(std::string command, bool json) : command_(std::move(command)), json_(json) {}
  bool json() const { return json_; }

  // The report of a command that goes on until a signal ends it: now, because whoever started it needs to know. With
  // --json only.
  void report_now(const Json& body) const;
  bool reported() const { return reported_; }

  // A line for people.
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) const {
    if (!json_) print_out(on_one_line(fmt::format(format, std::forward<Args>(args)...)));
  }
  // What to do next: for people, too, but not on standard output when that is JSON.
  void hint(const std::string& text) const { json_ ? print_err(on_one_line(text)) : print_out(on_one_line(text)); }
  // A warning, on standard error.
  void warn(const std::string& text) const { print_err(on_one_line("foreload: warning: " + text)); }

 private:
  // Names of files and samples must not be able to write to the terminal.
  static std::string on_one_line(const std::string& text) { return printable(text, kLongestLine) + "\n"; }

  std::string command_;
  bool json_;
  mutable bool reported_ = false;
};

struct Command {
  CLI::App* app = nullptr;
  std::function<Result<Json>(const Output&)> run;
};

// Adds the sub-command `name` with what all have in common; `examples` ends its --help.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& purpose, const std::string& examples);

// For flags that name something: what is wrong with an empty word, as CLI11's checks tell it.
std::string refuse_empty(const std::string& text);

// Parses the arguments, runs the chosen command, prints its report or error. Returns the exit code: 0 done,
// 1 failed, 2 wrong usage, 130 and 143 stopped by SIGINT and SIGTERM.
int run_command_line(CLI::App& app, const std::vector<Command>& commands, int argc, const char* const* argv);

}  // namespace foreload
