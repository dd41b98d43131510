#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "agent_mpi.h"
#include "agent_peers.h"
#include "background.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "commands.h"
#include "host/keeper.h"
#include "host/roster_board.h"
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
    "  foreload agent --host job7 --peers a,b,c --credentials job-keys --learners 8\n"
    "                                              the same on machines a, b and c: each\n"
    "                                              keeps a third, for all\n"
    "  foreload agent --make-credentials job-keys  keys with which the agents of a job\n"
    "                                              over several machines know each other";

constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Duration kAlone = std::chrono::seconds(1);  // before it is sure that all others have left
constexpr Bytes kScratch = 32_MiB;                    // of a worker

struct AgentOptions {
  std::string host;
  std::string memory;
  std::string metrics;
  std::string new_credentials;  // folder to make
  AgentPeersOptions peers;
  std::string transport = "grpc";
  std::string disk_size;
  unsigned workers = 0;
  bool status = false;
  bool with_members = false;  // as long as there are others, in the background, without prep threads
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
  std::unique_ptr<AgentPeers> peers;       // null: there is one host
  std::unique_ptr<MetricsServer> metrics;  // null: nobody asked for it
  std::unique_ptr<Keeper> keeper;
  std::shared_ptr<Workshop> workshop;
};

Result<std::unique_ptr<MetricsServer>> serve_metrics(const ListenAddress& address, Member& member,
                                                     const AgentPeers* peers, const Output& output) {
  const auto text = [&member, peers]() -> std::optional<std::string> {
    const auto survey = survey_host(member);
    if (!survey) return std::nullopt;
    return metrics_text(*survey) + (peers != nullptr ? peers->metrics() : "");
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
  AgentPeersOptions peers = options.peers;
  if (!options.disk_size.empty()) {
    FORELOAD_ASSIGN(peers.disk_bytes, parse_bytes(options.disk_size));
  }
  Agent agent;
  FORELOAD_ASSIGN(agent.member, join(options, needs));
  if (options.transport == "mpi") {
    FORELOAD_ASSIGN(agent.peers, open_agent_mpi(agent.member, options.peers));
  } else if (!options.peers.peers.empty()) {
    FORELOAD_ASSIGN(agent.peers, open_agent_peers(agent.member, peers));
  }
  const unsigned wanted = options.workers != 0 ? options.workers : usable_cores();
  const unsigned threads = options.with_members ? 0 : wanted;
  FORELOAD_TRY(agent.member->reserve_more(threads * kScratch));
  if (address) {
    FORELOAD_ASSIGN(agent.metrics, serve_metrics(*address, *agent.member, agent.peers.get(), output));
  }
  if (options.with_members) return agent;
  FORELOAD_ASSIGN(agent.keeper, Keeper::start(agent.member));
  FORELOAD_ASSIGN(agent.workshop, Workshop::open(agent.member, {.threads = threads, .scratch = threads * kScratch}));
  return agent;
}

// Whether it goes on. Says what there is to say.
Result<bool> look(const Agent& agent, const Output& output) {
  if (!agent.peers) return true;
  for (const std::string& text : agent.peers->take_news()) output.hint(text);
  for (const std::string& text : agent.peers->take_warnings()) output.warn(text);
  if (const auto failure = agent.peers->failure()) return *failure;
  return true;
}

bool has_others(const Member& member, Control& control) {
  const auto is_other = [&](const MemberInfo& other) { return other.alive && !(other.id == member.id()); };
  return std::ranges::any_of(control.members(), is_other);
}

// Does somebody talk to the other hosts already?
bool has_agent(const std::string& host) {
  const auto member = Member::join(host, {});
  const auto board = member.ok() ? RosterBoard::find(**member) : std::nullopt;
  return board && board->has_agent((*member)->control());
}

// What went wrong is for the member that started it, which reads standard output, and for people.
Result<Json> wait_for_agent(Background& background, const Output& output) {
  auto begun = background.wait();
  if (!begun.ok()) output.line("{}", begun.error().message);
  return begun;
}

// In the background, for the member that started it, until the last one is gone.
Result<Json> serve_members(const AgentOptions& options, const Output& output) {
  FORELOAD_ASSIGN(Background background, Background::begin());
  if (background.is_front()) return wait_for_agent(background, output);
  auto agent = start(options, output);
  // Several members may start one at the same time.
  if (!agent.ok() && agent.error().code == Code::kMismatch && has_agent(options.host)) {
    background.ready();
    return Json::object();
  }
  if (!agent.ok()) {
    background.fail(agent.error());
    return Json::object();
  }
  background.ready();
  Time alone{};
  while (caught_signal() == 0) {
    FORELOAD_TRY(look(*agent, output));
    const Time time = now();
    if (has_others(*agent->member, agent->member->control())) alone = {};
    if (alone == Time{}) alone = time;
    if (time - alone > kAlone) return Json::object();
    std::this_thread::sleep_for(kLook);
  }
  return Error{Code::kCancelled, "stopped by a signal"};
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
  if (agent.peers) output.line("peers reach it at {}", agent.peers->address());
  output.report_now({{"host", options.host},
                     {"made", agent.member->created()},
                     {"workers", agent.workshop->workers()},
                     {"budget_bytes", budget},
                     {"metrics", agent.metrics ? Json(url) : Json()},
                     {"peers", agent.peers ? Json(agent.peers->address()) : Json()}});
  while (caught_signal() == 0) {
    FORELOAD_TRY(look(agent, output));
    std::this_thread::sleep_for(kLook);
  }
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

Status check_transport(const AgentOptions& options) {
  const bool given = !options.peers.peers.empty();
  const bool keys = !options.peers.credentials.empty();
  if (options.transport == "mpi" && (given || keys)) {
    return Error{
        Code::kInvalid,
        fmt::format("{} is for --transport grpc: over MPI the peers are the processes that mpirun started, and "
                    "the launcher is trusted; leave it out",
                    given ? "--peers" : "--credentials")};
  }
  if (keys && !given) return Error{Code::kInvalid, "--credentials is for hosts with peers: give --peers, too"};
  return {};
}

Result<Json> run_agent(const AgentOptions& options, const Output& output) {
  if (!options.new_credentials.empty()) return write_credentials(options.new_credentials, output);
  if (options.host.empty()) return Error{Code::kInvalid, "--host is missing: name the host to join"};
  FORELOAD_TRY(check_transport(options));
  if (options.status) return status(options, output);
  return options.with_members ? serve_members(options, output) : serve(options, output);
}

void add_peer_flags(CLI::App& command, AgentOptions& options) {
  CLI::Option* const peers =
      command
          .add_option("--peers", options.peers.peers,
                      "Hosts of the job, HOST[:PORT],… in the order of their ranks, this one among them; auto: as "
                      "torchrun or Slurm say")
          ->check(refuse_empty);
  command
      .add_option(
          "--transport", options.transport,
          "grpc, or mpi: the peers are the other agents that mpirun started (mpirun -npernode 1 --bind-to none)")
      ->check(CLI::IsMember({"grpc", "mpi"}))
      ->capture_default_str();
  command.add_option("--learners", options.peers.learners,
                     "With peers: ranks on this host; default: as the launcher says");
  command
      .add_option("--host-index", options.peers.host,
                  "Which of the peers this host is, from 0; default: the one with an address of this machine")
      ->needs(peers);
  command
      .add_option("--listen", options.peers.listen, "Address for the other hosts; default: where they expect this one")
      ->check(refuse_empty)
      ->needs(peers);
  command
      .add_option("--credentials", options.peers.credentials,
                  "Folder made by --make-credentials; without it, peers must be on this machine")
      ->check(refuse_empty);
  CLI::Option* const disk =
      command
          .add_option("--disk", options.peers.disk,
                      "With peers: the folder that this host's ranks are given for their disk caches, which are then "
                      "homes of samples for all hosts; default: they have none")
          ->check(refuse_empty)
          ->needs(peers);
  command
      .add_option("--disk-size", options.disk_size,
                  "Of it at most, for each rank (200GB); default: 90 % of the file system for all of them")
      ->check(refuse_empty)
      ->needs(disk);
  command
      .add_flag("--with-members", options.with_members,
                "Go to the background, lend no cores, and leave with the last other member: how a member starts one")
      ->needs(peers);
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
  add_peer_flags(*command, *options);
  command->add_flag("--status", options->status, "Show the host instead of joining it")->excludes("--metrics");
  command
      ->add_option("--make-credentials", options->new_credentials,
                   "Make this folder, with keys for the agents of one job over several machines, and join nothing")
      ->check(refuse_empty)
      ->excludes(host)
      ->excludes("--status")
      ->excludes("--metrics");
  return {command, [options](const Output& output) { return run_agent(*options, output); }};
}

}  // namespace foreload
