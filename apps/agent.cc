#include <fmt/core.h>

#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "commands.h"
#include "host/keeper.h"
#include "host/survey.h"
#include "host/workshop.h"
#include "host_report.h"
#include "number_flag.h"
#include "signals.h"

namespace foreload {
namespace {

constexpr const char* kExamples =
    "  foreload agent --host job7 --memory 64GiB   lend all cores to the members of\n"
    "                                              host job7, and keep its cache warm\n"
    "  foreload agent --host job7 --status         who is there, and how it goes";

constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Bytes kScratch = 32_MiB;  // of a worker

struct AgentOptions {
  std::string host;
  std::string memory;
  unsigned threads = 0;
  bool status = false;
};

Result<Json> status(const AgentOptions& options, const Output& output) {
  FORELOAD_ASSIGN(auto observer, Observer::open(options.host));
  const auto survey = observer ? observer->look() : std::nullopt;
  if (!survey) {
    return Error{Code::kNotFound, fmt::format("there is no host \"{}\" of this user on this machine", options.host)};
  }
  for (const std::string& line : host_lines(*survey)) output.line("{}", line);
  return host_json(*survey);
}

Result<std::shared_ptr<Member>> join(const AgentOptions& options, const JoinOptions& needs) {
  const EndAtOnce while_joining;  // whoever does not answer is waited for
  return Member::join(options.host, needs);
}

// A member that consumes nothing, until a signal comes.
Result<Json> serve(const AgentOptions& options, const Output& output) {
  JoinOptions needs{.own_budget = available_memory() / 2};
  if (!options.memory.empty()) {
    FORELOAD_ASSIGN(needs.budget, parse_bytes(options.memory));
  }
  FORELOAD_ASSIGN(auto member, join(options, needs));
  const unsigned threads = options.threads != 0 ? options.threads : usable_cores();
  FORELOAD_TRY(member->reserve_more(threads * kScratch));
  FORELOAD_ASSIGN(const auto keeper, Keeper::start(member));
  FORELOAD_ASSIGN(const auto workshop, Workshop::open(member, {.threads = threads, .scratch = threads * kScratch}));
  output.line("{} host \"{}\": {}, {} for all members; end with Ctrl-C or SIGTERM",
              member->created() ? "made" : "joined", options.host, counted(threads, "prep thread"),
              format_bytes(member->control().budget()));
  while (caught_signal() == 0) std::this_thread::sleep_for(kLook);
  return Error{Code::kCancelled, "stopped by a signal"};
}

}  // namespace

Command agent_command(CLI::App& app) {
  auto options = std::make_shared<AgentOptions>();
  CLI::App* command = add_command(
      app, "agent", "Join a host without consuming: lend CPUs, keep its cache warm between jobs", kExamples);
  command->add_option("--host", options->host, "Name of the host")->required()->check(refuse_empty);
  command->add_option("--memory", options->memory,
                      "Budget of the whole host (64GiB); default: what it has, or half of what is free");
  add_number(*command, "--threads", options->threads, "Prep threads; 0: one per usable core");
  command->add_flag("--status", options->status, "Show the host instead of joining it");
  return {command, [options](const Output& output) {
            return options->status ? status(*options, output) : serve(*options, output);
          }};
}

}  // namespace foreload
