#include "command.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>

#include "nearest.h"
#include "signals.h"

namespace foreload {

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

// Keys and paths need not be UTF-8; a report must not fail for that.
void print_json(const Json& report) {
  print_out(report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json report_head(const std::string& command) {
  Json report;
  report["schema"] = 1;
  report["command"] = command;
  return report;
}

Json report_of(const std::string& command, const Json& body) {
  Json report = report_head(command);
  report.update(body);
  return report;
}

void print_error(const std::string& command, const Error& error, bool json) {
  const std::string message = printable(error.message, kLongestLine);
  print_err(fmt::format("foreload: {}\n", message));
  if (!json) return;
  Json report = report_head(command);
  report["error"] = {{"code", code_name(error.code)}, {"message", message}};
  print_json(report);
}

int exit_code(const Error& error) {
  if (error.code == Code::kCancelled && caught_signal() != 0) return 128 + caught_signal();
  return error.code == Code::kInvalid ? kUsage : kFailed;
}

Result<Json> run_guarded(const Command& command, const Output& output) {
  try {
    return command.run(output);
  } catch (const std::bad_alloc&) {
    return Error{Code::kNoMemory, "out of memory: ask for less with fewer threads or a smaller budget"};
  } catch (const std::exception& exception) {  // of the standard library: we throw nothing
    return Error{Code::kIo, fmt::format("unexpected failure: {}", exception.what())};
  }
}

// Of a command that did its work.
int code_of_output(const std::string& command) {
  if (all_printed()) return kDone;
  print_error(command, {Code::kIo, "cannot write to standard output"}, false);
  return kFailed;
}

int run_one(const Command& command) {
  const std::string name = command.app->get_name();
  const bool json = command.app->count("--json") > 0;
  const Output output(name, json);
  Result<Json> body = run_guarded(command, output);
  if (!body) {
    print_error(name, body.error(), json && !output.reported());
    return exit_code(body.error());
  }
  if (json) print_json(report_of(name, *body));
  return code_of_output(name);
}

const Command* chosen(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (command.app->parsed()) return &command;
  }
  return nullptr;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

// Of a command and of those that were chosen below it.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* below : app.get_subcommands()) {
    const std::vector<std::string> more = option_names(*below);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

// "; for --epoch, did you mean --epochs?": of the first option that there is not, if one is like it.
std::string meant_option(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<std::string> known = option_names(app);
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name.size() < 3 || name.compare(0, 2, "--") != 0) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string meant = nearest(name, known);
    return meant.empty() ? "" : fmt::format("; for {}, did you mean {}?", name, meant);
  }
  return {};
}

std::string usage_problem(const CLI::App& app, const CLI::ParseError& problem,
                          const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].compare(0, 1, "-") == 0) {
    return fmt::format("{}{} (see foreload --help)", problem.what(), meant_option(app, arguments));
  }
  const std::vector<std::string> commands = command_names(app);
  if (std::find(commands.begin(), commands.end(), arguments[0]) == commands.end()) {
    const std::string meant = nearest(arguments[0], commands);
    return fmt::format("there is no command \"{}\"{} (see foreload --help)", arguments[0],
                       meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
  }
  return fmt::format("{}{} (see foreload {} --help)", problem.what(),
                     meant_option(*app.get_subcommand(arguments[0]), arguments), arguments[0]);
}

int report_usage(CLI::App& app, const CLI::ParseError& problem, const std::vector<std::string>& arguments) {
  if (problem.get_exit_code() == 0) {  // --help and --version
    app.exit(problem);
    return code_of_output("");
  }
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  const std::string command = arguments.empty() || arguments[0].compare(0, 1, "-") == 0 ? "" : arguments[0];
  print_error(command, {Code::kInvalid, usage_problem(app, problem, arguments)}, json);
  return kUsage;
}

}  // namespace

void Output::report_now(const Json& body) const {
  if (!json_) return;
  print_json(report_of(command_, body));
  reported_ = true;
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& purpose, const std::string& examples) {
  CLI::App* command = app.add_subcommand(name, purpose);
  command->add_flag("--json")->description("Print one JSON object instead of text");
  command->footer("Examples:\n" + examples);
  return command;
}

std::string refuse_empty(const std::string& text) {
  return text.empty() ? "nothing is named: give a name, or leave the option out" : "";
}

int run_command_line(CLI::App& app, const std::vector<Command>& commands, int argc, const char* const* argv) {
  occupy_closed_streams();
  catch_signals();
  app.require_subcommand(1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return report_usage(app, problem, {argv + std::min(argc, 1), argv + argc});
  }
  return run_one(*chosen(commands));
}

}  // namespace foreload
