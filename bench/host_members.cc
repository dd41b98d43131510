// What a further member costs in memory, and how members share the cores.
#include <algorithm>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/machine.h"
#include "host_parts.h"
#include "probe/loader_rates.h"
#include "probe/process_view.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

struct Footprint {
  MemoryShare share{};  // sum over all processes
  Bytes files = 0;      // memory files, each once
};
// When all samples are cached and the ring has been filled.
Result<Footprint> memory_of(const HostBench& bench, unsigned members) {
  HostJob job{.loader = bench.picture_options()};
  job.loader.batch = 32;
  job.loader.host = bench.fresh_host();
  FORELOAD_ASSIGN(Crew crew, start_jobs(bench, std::vector<HostJob>(members, job)));
  FORELOAD_TRY(ask_all(crew, "epoch", "source"));
  FORELOAD_TRY(rate_of_equals(crew, 8));
  Footprint sum;
  std::map<ino_t, Bytes> files;
  for (std::size_t i = 0; i < crew.size(); ++i) {
    FORELOAD_ASSIGN(const MemoryShare each, memory_share(crew.process(i)));
    sum.share.all += each.all;
    sum.share.anonymous += each.anonymous;
    sum.share.shared += each.shared;
    sum.share.files += each.files;
    files.merge(memory_files(crew.process(i)));
  }
  for (const auto& [file, bytes] : files) sum.files += bytes;
  return sum;
}

// What is more with more members, for each of them in MB.
double each(Bytes many, Bytes one, unsigned further) {
  return (static_cast<double>(many) - static_cast<double>(one)) / 1e6 / further;
}

// How many workers of a crew want to run, looked at again and again.
struct Running {
  unsigned most = 0;
  double mean = 0;
  double beyond = 0;  // share of the looks that saw more than there are cores
};
Running watch(const Crew& crew, Duration duration) {
  struct Worker {
    pid_t process;
    pid_t thread;
  };
  std::vector<Worker> workers;
  for (std::size_t i = 0; i < crew.size(); ++i) {
    for (const pid_t thread : threads_named(crew.process(i), "fl-prep-")) workers.push_back({crew.process(i), thread});
  }
  Running running;
  unsigned looks = 0, sum = 0, beyond = 0;
  for (const Time until = now() + duration; now() < until; ++looks) {
    const auto count = static_cast<unsigned>(std::count_if(workers.begin(), workers.end(), [](const Worker& worker) {
      return thread_state(worker.process, worker.thread) == 'R';
    }));
    sum += count;
    beyond += count > usable_cores() ? 1 : 0;
    running.most = std::max(running.most, count);
    std::this_thread::sleep_for(5ms);
  }
  running.mean = static_cast<double>(sum) / looks;
  running.beyond = static_cast<double>(beyond) / looks;
  return running;
}

constexpr unsigned kMembers = 3;

Status running_workers(const HostBench& bench, Crew& crew) {
  FORELOAD_TRY(crew.tell("rate 3"));
  std::this_thread::sleep_for(500ms);
  const Running running = watch(crew, 2s);
  FORELOAD_ASSIGN(const auto answers, crew.answers(30s));
  std::vector<double> rates;
  for (const std::string& answer : answers) {
    FORELOAD_ASSIGN(const double rate, number_in(answer, "rate"));
    rates.push_back(rate);
  }
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  bench.report.note(
      "host/running_workers", running.mean, "threads",
      fmt::format("prep threads in state R, mean of looks 5 ms apart for 2 s; {} members with {} threads each that all "
                  "load as fast as they can, {} cores; {} at most; {:.1f} % of the looks saw more than cores; the "
                  "slowest member got {:.2f} of the fastest one's samples/s",
                  kMembers, usable_cores(), usable_cores(), running.most, 100 * running.beyond, *least / *most));
  return {};
}

// One member loads, the others have full rings.
Status lent_cores(const HostBench& bench, Crew& crew, Crew& alone) {
  std::vector<double> ratios;
  for (unsigned round = 0; round < bench.rounds; ++round) {
    FORELOAD_ASSIGN(const double before, rate_of_all(alone, 1));
    FORELOAD_ASSIGN(const std::string answer, crew.ask_one(round % kMembers, "rate 1.5", 30s));
    FORELOAD_ASSIGN(const double ours, number_in(answer, "rate"));
    FORELOAD_ASSIGN(const double after, rate_of_all(alone, 1));
    ratios.push_back(2 * ours / (before + after));
  }
  bench.report.note("host/idle_members_lend_cores", median(ratios), "ratio",
                    fmt::format("samples/s of one member, with {} more in the host that have enough / one job alone on "
                                "all cores; {}, batch 32, median of {} rounds",
                                kMembers - 1, kPictures, bench.rounds));
  return {};
}

}  // namespace

Status bench_memory(const HostBench& bench) {
  constexpr unsigned kJobs = 4;
  constexpr unsigned kMore = kJobs - 1;
  FORELOAD_ASSIGN(const Footprint alone, memory_of(bench, 1));
  FORELOAD_ASSIGN(const Footprint together, memory_of(bench, kJobs));
  const MemoryShare& one = alone.share;
  const MemoryShare& all = together.share;
  bench.report.add(
      "host/member_memory", each(all.all, one.all, kMore), "MB", 20, false,
      fmt::format("(sum of Pss of {} equal jobs in one host - Pss of one job in a host) / {}: what each further one "
                  "touches, {:.1f} MB heap and stacks, {:.1f} shared memory, {:.1f} files; cache and batches are in "
                  "both sums once, one job alone has {:.0f} MB. Beside it each reserves {:.0f} MB in memory files that "
                  "nobody touches, for a ring of its own when it goes on alone",
                  kJobs, kMore, each(all.anonymous, one.anonymous, kMore), each(all.shared, one.shared, kMore),
                  each(all.files, one.files, kMore), static_cast<double>(one.all) / 1e6,
                  each(together.files, alone.files, kMore)));
  return {};
}

Status bench_cores(const HostBench& bench) {
  std::vector<HostJob> jobs(kMembers, HostJob{.loader = bench.picture_options()});
  for (HostJob& job : jobs) job.loader.batch = 32;
  FORELOAD_ASSIGN(Crew alone, start_jobs(bench, {jobs[0]}));
  const std::string host = bench.fresh_host();
  for (unsigned i = 0; i < kMembers; ++i) {
    jobs[i].loader.host = host;
    jobs[i].loader.seed = 10 + i;  // streams of their own
  }
  FORELOAD_ASSIGN(Crew crew, start_jobs(bench, jobs));
  for (Crew* each : {&alone, &crew}) FORELOAD_TRY(ask_all(*each, "epoch", "source"));
  FORELOAD_TRY(running_workers(bench, crew));
  return lent_cores(bench, crew, alone);
}

}  // namespace foreload
