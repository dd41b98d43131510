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
#include "peers/credentials.h"
#include "serve/metrics.h"
#include "serve/metrics_server.h"
#include "signals.h"

namespace foreload {
namespace {

constexpr const char* kExamples =
    "  foreload agent --host job7 --memory 64GiB   lend all cores to the members of\n"
    "                                              host job7, and keep its cache warm\n"
    "  foreload agent --host job7 --status         who is there, and how it goes\n"
    "  foreload agent --host job7 --metrics 9464   tell Prometheus, on this machine,\n"
    "                                              at http://127.0.0.1:9464/metrics\n"
    "  foreload agent --make-credentials job-keys  keys with which the agents of a job\n"
    "                                              over several machines know each other";

constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Bytes kScratch = 32_MiB;  // of a worker

struct AgentOptions {
  std::string host;
  std::string memory;
  std::string metrics;
  std::string credentials;  // folder to make
  unsigned workers = 0;
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

// It ends from the last to the first: no sample is begun any more, those at hand are finished and the cores given back;
// caches are let go of; then it leaves.
struct Agent {
  std::shared_ptr<Member> member;
  std::unique_ptr<MetricsServer> metrics;  // null: nobody asked for it
  std::unique_ptr<Keeper> keeper;
  std::shared_ptr<Workshop> workshop;
};

Result<std::unique_ptr<MetricsServer>> serve_metrics(const ListenAddress& address, Member& member,
                                                     const Output& output) {
  const auto text = [&member]() -> std::optional<std::string> {
    const auto survey = survey_host(member);
    return survey ? std::optional(metrics_text(*survey)) : std::nullopt;
  };
  FORELOAD_ASSIGN(auto server, MetricsServer::start(address, text));
  if (!address.is_loopback()) {
    output.warn(fmt::format("metrics can be read by whoever reaches {}: there is no password and no encryption",
                            server->address().text()));
  }
  return server;
}

Result<Agent> start(const AgentOptions& options, const Output& output) {
  std::optional<ListenAddress> address;
  if (!options.metrics.empty()) {
    FORELOAD_ASSIGN(address, ListenAddress::parse(options.metrics));
  }
  JoinOptions needs{.own_budget = available_memory() / 2};
  if (!options.memory.empty()) {
    FORELOAD_ASSIGN(needs.budget, parse_bytes(options.memory));
  }
  Agent agent;
  FORELOAD_ASSIGN(agent.member, join(options, needs));
  const unsigned threads = options.workers != 0 ? options.workers : usable_cores();
  FORELOAD_TRY(agent.member->reserve_more(threads * kScratch));
  if (address) {
    FORELOAD_ASSIGN(agent.metrics, serve_metrics(*address, *agent.member, output));
  }
  FORELOAD_ASSIGN(agent.keeper, Keeper::start(agent.member));
  FORELOAD_ASSIGN(agent.workshop, Workshop::open(agent.member, {.threads = threads, .scratch = threads * kScratch}));
  return agent;
}

// A member that consumes nothing, until a signal comes.
Result<Json> serve(const AgentOptions& options, const Output& output) {
  FORELOAD_ASSIGN(const Agent agent, start(options, output));
  const std::string url = agent.metrics ? fmt::format("http://{}/metrics", agent.metrics->address().text()) : "";
  const Bytes budget = agent.member->control().budget();
  output.line("{} host \"{}\": {}, {} for all members; end with Ctrl-C or SIGTERM",
              agent.member->created() ? "made" : "joined", options.host,
              counted(agent.workshop->workers(), "prep thread"), format_bytes(budget));
  if (agent.metrics) output.line("metrics: {}", url);
  output.report_now({{"host", options.host},
                     {"made", agent.member->created()},
                     {"workers", agent.workshop->workers()},
                     {"budget_bytes", budget},
                     {"metrics", agent.metrics ? Json(url) : Json()}});
  while (caught_signal() == 0) std::this_thread::sleep_for(kLook);
  return Error{Code::kCancelled, "stopped by a signal"};
}

Result<Json> write_credentials(const std::string& folder, const Output& output) {
  FORELOAD_TRY(make_credentials(folder));
  output.line(
      "{} holds new credentials for the agents of one job, valid for 30 days: whoever has them is a peer. Copy "
      "the folder to every machine of the job, over something safe, and nowhere else",
      folder);
  return Json{{"credentials", folder}};
}

Result<Json> run_agent(const AgentOptions& options, const Output& output) {
  if (!options.credentials.empty()) return write_credentials(options.credentials, output);
  if (options.host.empty()) return Error{Code::kInvalid, "--host is missing: name the host to join"};
  return options.status ? status(options, output) : serve(options, output);
}

}  // namespace

Command agent_command(CLI::App& app) {
  auto options = std::make_shared<AgentOptions>();
  CLI::App* command = add_command(
      app, "agent", "Join a host without consuming: lend CPUs, keep its cache warm between jobs", kExamples);
  CLI::Option* const host = command->add_option("--host", options->host, "Name of the host")->check(refuse_empty);
  command->add_option("--memory", options->memory,
                      "Budget of the whole host (64GiB); default: what it has, or half of what is free");
  add_number(*command, "--workers", options->workers, "Prep threads; 0: one per usable core");
  command
      ->add_option("--metrics", options->metrics,
                   "Serve metrics for Prometheus: PORT (on this machine only), HOST:PORT or [::1]:PORT; port 0: any")
      ->check(refuse_empty);
  command->add_flag("--status", options->status, "Show the host instead of joining it")->excludes("--metrics");
  command
      ->add_option("--make-credentials", options->credentials,
                   "Make this folder, with keys for the agents of one job over several machines, and join nothing")
      ->check(refuse_empty)
      ->excludes(host)
      ->excludes("--status")
      ->excludes("--metrics");
  return {command, [options](const Output& output) { return run_agent(*options, output); }};
}

}  // namespace foreload
