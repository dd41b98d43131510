#include <unistd.h>

#include <memory>
#include <thread>

#include "base/clock.h"
#include "commands.h"
#include "host/survey.h"
#include "host_report.h"
#include "signals.h"

namespace foreload {
namespace {

constexpr const char* kExamples =
    "  foreload top --host job7           a live view; Ctrl-C ends it\n"
    "  foreload top --host job7 --once    one look\n"
    "  foreload top --host job7 --json    the same for programs";

constexpr Duration kRefresh = std::chrono::seconds(1);
constexpr Duration kLook = std::chrono::milliseconds(50);

struct TopOptions {
  std::string host;
  bool once = false;
};

Result<Json> run(const TopOptions& options, const Output& output) {
  FORELOAD_ASSIGN(auto observer, Observer::open(options.host));
  if (!observer) {
    return Error{Code::kNotFound, fmt::format("there is no host \"{}\" of this user on this machine", options.host)};
  }
  const bool live = !options.once && !output.json() && ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const auto survey = observer->look();
    if (!survey) return Error{Code::kNotFound, fmt::format("host \"{}\" has ended", options.host)};
    if (live) print_out("\033[H\033[2J");  // from the top, with nothing below
    for (const std::string& line : host_lines(*survey)) output.line("{}", line);
    if (!live) return host_json(*survey);
    const Time until = now() + kRefresh;
    while (now() < until) {
      if (caught_signal() != 0) return Error{Code::kCancelled, "stopped by a signal"};
      std::this_thread::sleep_for(kLook);
    }
  }
}

}  // namespace

Command top_command(CLI::App& app) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command =
      add_command(app, "top", "Watch a host: members, queues, stalls, hit rates, who prepares for whom", kExamples);
  command->add_option("--host", options->host, "Name of the host")->required()->check(refuse_empty);
  command->add_flag("--once", options->once, "Look once; also when standard output is no terminal");
  return {command, [options](const Output& output) { return run(*options, output); }};
}

}  // namespace foreload
