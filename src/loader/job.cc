// Half of a host's memory is for homes, as its card says, less the table of all samples; all hosts compute that alike.
#include "loader/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "host/plan_board.h"
#include "loader/agent_process.h"
#include "loader/order.h"
#include "loader/setup.h"
#include "policy/eviction.h"
#include "tier/disk_board.h"
#include "tier/disk_store.h"
#include "tier/shared_arena.h"

namespace foreload {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(20);
constexpr Duration kStartAgain = std::chrono::seconds(3);  // an agent where the last one has ended
constexpr Duration kQuiet = std::chrono::seconds(5);       // before the user is told who is missing
constexpr Duration kPatience = std::chrono::minutes(10);   // with hosts that do not come

struct Found {
  JobRoster job;
  std::optional<RosterBoard> board{};
};

Error nobody_came(const std::string& host, const std::string& said) {
  return {Code::kIo, fmt::format("the hosts of this job have not met: {}. Start an agent on each of them with the same "
                                 "--peers (foreload agent --host {} --peers …), or leave out peers",
                                 said.empty() ? "no agent of this host tells who they are" : said, host)};
}

// An agent may end before the hosts have met: then there is another one.
Result<Found> wait_for_roster(const LoaderOptions& options, Member& member) {
  const Time begun = now();
  Time next_start = begun;
  bool told = false;
  std::string said;
  std::optional<RosterBoard> board;
  for (;;) {
    const Time time = now();
    if (!board) board = RosterBoard::find(member);
    const bool has_agent = board && board->has_agent(member.control());
    if (!has_agent && options.peers != "mpi" && time >= next_start) {  // mpirun starts its own
      FORELOAD_TRY(start_agent(options));
      next_start = now() + kStartAgain;
    }
    if (board) {
      if (auto job = board->read()) return Found{std::move(*job), std::move(board)};
      said = board->said();
      if (has_agent && board->has_failed()) return nobody_came(options.host, said);
    }
    std::this_thread::sleep_for(kLook);
    if (options.stop && options.stop()) return Error{Code::kCancelled, "stopped while the hosts of the job meet"};
    if (time - begun > kPatience) return nobody_came(options.host, said);
    if (!told && time - begun > kQuiet && options.warn) {
      options.warn(said.empty() ? "waiting for this host's agent, which talks to the other hosts" : said);
      told = true;
    }
  }
}

Result<std::optional<Found>> find_roster(const LoaderOptions& options, const Seams& seams) {
  if (seams.roster) {
    const HostIndex self = options.rank < seams.roster->world() ? seams.roster->host_of(options.rank) : 0;
    return std::optional(Found{{*seams.roster, self}, {}});
  }
  if (options.peers.empty()) return std::optional<Found>();
  FORELOAD_ASSIGN(auto member, Member::join(options.host, join_options(options, seams)));
  FORELOAD_ASSIGN(Found found, wait_for_roster(options, *member));
  return std::optional(std::move(found));
}

// The agents do not know how fast learners are.
Result<Roster> with_rates(const Roster& roster, const std::vector<std::uint32_t>& rates) {
  if (rates.empty()) return roster;
  if (rates.size() != roster.world()) {
    return Error{Code::kInvalid, fmt::format("rates has {} numbers, and the world is {}: give one for each rank",
                                             rates.size(), roster.world())};
  }
  std::vector<RosterHost> hosts(roster.hosts().begin(), roster.hosts().end());
  for (HostIndex host = 0; host < hosts.size(); ++host) {
    hosts[host].rates.assign(rates.begin() + roster.first_rank(host), rates.begin() + roster.end_rank(host));
  }
  return Roster::create(std::move(hosts), roster.costs());
}

Status check_roster(const LoaderOptions& options, const JobRoster& job) {
  const Roster& roster = job.roster;
  if (roster.world() != options.world) {
    return Error{Code::kInvalid, fmt::format("the hosts of the job have {} learners together, and the world is {}: "
                                             "give every host's agent the number of ranks that run there (--learners)",
                                             roster.world(), options.world)};
  }
  if (roster.host_of(options.rank) != job.self) {
    return Error{Code::kInvalid,
                 fmt::format("rank {} belongs to host {} of the job, and this is host {}, with ranks {} … {}: list the "
                             "hosts (--peers) in the order of their ranks",
                             options.rank, roster.host_of(options.rank), job.self, roster.first_rank(job.self),
                             roster.end_rank(job.self) - 1)};
  }
  return {};
}

// What each learner of a host has on disk for all hosts.
Bytes disk_each(const RosterHost& host) {
  return host.learners > 0 && host.learners <= DiskBoard::kMostSeats ? host.disk / host.learners : 0;
}

// What the placement has: the tables of the shared cache and of the disks take their part. Of what a disk then has, a
// thirty-third is for holes, and for what can not be divided evenly among learners.
Result<Roster> less_tables(const Roster& roster, std::uint64_t samples) {
  constexpr Bytes kSlack = 33;
  const Bytes table = SharedArena::table_bytes(samples);
  const Bytes on_disk = DiskStore::table_bytes(samples);
  std::vector<RosterHost> hosts(roster.hosts().begin(), roster.hosts().end());
  for (RosterHost& host : hosts) {
    const Bytes each = disk_each(host);
    const Bytes board = each > 0 ? DiskBoard::region_bytes(samples, host.learners) : 0;
    host.memory -= std::min(host.memory, table + board);
    host.disk = host.learners * ((each - std::min(each, on_disk)) / kSlack * (kSlack - 1));
  }
  return Roster::create(std::move(hosts), roster.costs());
}

// Where there are homes on this host's disks, all hosts count on them.
Status check_disk_size(const LoaderOptions& options, Bytes each) {
  if (options.disk.empty() || options.disk_bytes == 0 || each == 0 || options.disk_bytes == each) return {};
  return Error{Code::kInvalid,
               fmt::format("this host's agent has told the others that each learner here keeps {} bytes on disk, and "
                           "{} bytes are given here: give the agent the same --disk-size, or leave it out here",
                           each, options.disk_bytes)};
}

// Learners of one host plan each step once. Where that can not be, each plans for itself.
void share_plans(const LoaderOptions& options, const PeerKey& key, const Schedule& schedule, StepPlans& plans) {
  const Roster& roster = plans.assignment().roster();
  if (options.host.empty() || roster.hosts()[roster.host_of(options.rank)].learners < 2) return;
  auto member = Member::join(options.host, {.budget = options.memory});
  if (!member.ok()) return;
  Hasher hash(2);
  hash.add(key.fingerprint).add(key.validators).add(key.roster);
  const JobShape& shape = plans.assignment().slice().shape();
  hash.add(plan_hash(schedule.options(), shape)).add(shape.unit);
  auto board = PlanBoard::open(std::move(*member), hash.value(), plans.max_host_count());
  if (board.ok()) plans.share(std::move(*board));
}

}  // namespace

Status check_peers(const LoaderOptions& options) {
  if (options.peers.empty()) {
    if (options.rates.empty() && options.assignment == Assignment::kBalanced) return {};
    return Error{Code::kInvalid, "assignment and rates are for jobs over several hosts: give peers, or leave them out"};
  }
  if (options.host.empty()) {
    return Error{Code::kInvalid, "peers are talked to by this host's agent: name the host (--host, host), too"};
  }
  if (evicts(options.eviction)) {
    return Error{Code::kInvalid,
                 "eviction belady and lru are for hosts that can not share their caches; these do: leave out eviction"};
  }
  if (!options.cache) {
    return Error{Code::kInvalid, "peers share their caches, and this host is to have none: leave out one of them"};
  }
  return {};
}

std::optional<HostIndex> JobPlan::home_elsewhere(SampleId id) const {
  const Home where = home(id);
  return where.exists() && where.host() != self ? std::optional(where.host()) : std::nullopt;
}

Result<JobPlan> plan_job(const LoaderOptions& options, const Source& source, const Schedule& schedule,
                         const SliceAssignment& slices, const Seams& seams) {
  FORELOAD_ASSIGN(auto found, find_roster(options, seams));
  if (!found) return JobPlan{};
  FORELOAD_TRY(check_roster(options, found->job));
  FORELOAD_ASSIGN(Roster roster, with_rates(found->job.roster, options.rates));
  FORELOAD_ASSIGN(const Roster room, less_tables(roster, source.size()));
  const auto footprint = [&](SampleId id) {
    const Bytes length = source.length(id);
    return length > options.limits.sample_bytes ? 0 : SharedArena::footprint(length);
  };
  HostPlacement homes = HostPlacement::plan(source.size(), options.seed, room, footprint);
  Hasher hash(1);
  hash.add(roster.hash()).add(options.seed).add(options.limits.sample_bytes);
  hash.add(static_cast<std::uint64_t>(options.assignment));
  BalancedAssignment assignment(schedule, slices, std::move(roster), std::move(homes),
                                [&](SampleId id) { return source.length(id); });
  auto plans = std::make_shared<StepPlans>(std::move(assignment), options.rank);
  const PeerKey key{source.fingerprint(), source.validators(), hash.value()};
  const Bytes each = disk_each(found->job.roster.hosts()[found->job.self]);
  FORELOAD_TRY(check_disk_size(options, each));
  if (options.assignment == Assignment::kBalanced) share_plans(options, key, schedule, *plans);
  return JobPlan{.plans = std::move(plans),
                 .self = found->job.self,
                 .key = key,
                 .board = std::move(found->board),
                 .balanced = options.assignment == Assignment::kBalanced,
                 .disk_each = each};
}

}  // namespace foreload
