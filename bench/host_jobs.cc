// Jobs of a search: k processes that load the same data in the same way. In one host each batch is fetched and prepared
// once and read by all of them; beside it k loaders that know nothing of each other, ours and torch's.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/machine.h"
#include "host/survey.h"
#include "host_parts.h"
#include "probe/loader_rates.h"
#include "probe/process_view.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kPeerRounds = 2, kTorchRounds = 1;  // figures without a goal
constexpr double kAloneSeconds = 1, kSeconds = 1.5, kTorchSeconds = 4;
constexpr unsigned kBatch = 32;

// Equal jobs in a host.
struct Team {
  std::string host;
  Crew crew;
  std::uint64_t batches = 0;  // that each takes in about kSeconds, if none has to wait

  Result<double> rate() { return rate_of_equals(crew, batches); }
  // How many prepare what they read: the others read what these prepare.
  std::size_t feeders() const {
    const auto observer = Observer::open(host);
    const auto seen = observer.ok() && *observer ? (*observer)->look() : std::nullopt;
    if (!seen) return 0;
    const auto& streams = seen->streams;
    return static_cast<std::size_t>(
        std::count_if(streams.begin(), streams.end(), [](const StreamSurvey& stream) { return stream.fed_by == 0; }));
  }
};

std::vector<HostJob> equal_jobs(const HostBench& bench, unsigned jobs, const std::string& host) {
  HostJob job{.loader = bench.picture_options()};
  job.loader.batch = kBatch;
  job.loader.host = host;
  return std::vector<HostJob>(jobs, job);
}

Result<Crew> start_warm(const HostBench& bench, unsigned jobs, const std::string& host) {
  FORELOAD_ASSIGN(Crew crew, start_jobs(bench, equal_jobs(bench, jobs, host)));
  FORELOAD_TRY(ask_all(crew, host.empty() ? "warm" : "epoch", "source"));
  return crew;
}

// torch.utils.data.DataLoader with torchvision, one worker process each. Errors when they are not there.
Result<Crew> start_torch(const HostBench& bench, unsigned jobs) {
  const auto program = std::filesystem::path(bench.program).parent_path() / "peers_torch";
  const std::vector<std::string> command{program.string(), "--mode", "serve", "torch1", bench.work + "/images"};
  FORELOAD_ASSIGN(Crew crew, Crew::start(std::vector<std::vector<std::string>>(jobs, command)));
  FORELOAD_ASSIGN(const auto opened, crew.answers(60s));
  for (const std::string& answer : opened) FORELOAD_TRY(number_in(answer, "opened"));
  return crew;
}

// How many times as fast `together` is as the others are, in turns.
Result<double> factor(Team& together, Crew& others, double other_seconds, unsigned rounds) {
  std::vector<double> factors;
  for (unsigned round = 0; round < rounds; ++round) {
    FORELOAD_ASSIGN(const double ours, together.rate());
    FORELOAD_ASSIGN(const double theirs, rate_of_all(others, other_seconds));
    factors.push_back(ours / theirs);
  }
  return median(factors);
}

Status against_independent(const HostBench& bench, unsigned jobs, Team& together) {
  FORELOAD_ASSIGN(Crew apart, start_warm(bench, jobs, ""));
  FORELOAD_ASSIGN(const double times, factor(together, apart, kSeconds, kPeerRounds));
  bench.report.note(fmt::format("host/jobs_k{}_against_independent", jobs), times, "ratio",
                    fmt::format("samples/s of {} jobs in one host / those of {} loaders without a host, each with "
                                "threads for all cores and a cache of its own; median of {} turns",
                                jobs, jobs, kPeerRounds));
  return {};
}

Status against_torch(const HostBench& bench, unsigned jobs, Team& together) {
  const std::string name = fmt::format("host/jobs_k{}_against_torch", jobs);
  auto torch = start_torch(bench, jobs);
  if (!torch.ok()) {
    bench.report.skip(name, "torch and torchvision, or the Python package, are not here: " + torch.error().message);
    return {};
  }
  FORELOAD_ASSIGN(const double times, factor(together, *torch, kTorchSeconds, kTorchRounds));
  bench.report.note(name, times, "ratio",
                    fmt::format("samples/s of {} jobs in one host / those of {} torch DataLoaders with torchvision and "
                                "one worker process each, files in the page cache",
                                jobs, jobs));
  return {};
}

Status jobs_of(const HostBench& bench, unsigned jobs, Crew& alone) {
  const std::string host = bench.fresh_host();
  FORELOAD_ASSIGN(Crew crew, start_warm(bench, jobs, host));
  FORELOAD_ASSIGN(double before, rate_of_all(alone, kAloneSeconds));
  Team together{host, std::move(crew), 8 + static_cast<std::uint64_t>(before * kSeconds / kBatch)};
  std::vector<double> ratios, rates;
  for (unsigned round = 0; round < bench.rounds; ++round) {
    FORELOAD_ASSIGN(const double ours, together.rate());
    FORELOAD_ASSIGN(const double after, rate_of_all(alone, kAloneSeconds));
    ratios.push_back(ours / (jobs * (before + after) / 2));
    rates.push_back(ours);
    before = after;
  }
  bench.report.add(
      fmt::format("host/jobs_k{}", jobs), median(ratios), "ratio", 0.9, true,
      fmt::format("samples/s of {} jobs in one host, {:.0f} together / ({} x those of one job alone on {} "
                  "cores); {}, batch {}, median of {} interleaved rounds; in the end {} of them prepared",
                  jobs, median(rates), jobs, usable_cores(), kPictures, kBatch, bench.rounds, together.feeders()));
  FORELOAD_TRY(against_independent(bench, jobs, together));
  return against_torch(bench, jobs, together);
}

// What `jobs` jobs read in their first epoch: by their own account, and all that their read calls returned.
struct Read {
  double source = 0;
  double calls = 0;
};
Result<Read> first_epoch(const HostBench& bench, unsigned jobs, const std::string& host) {
  std::vector<HostJob> all = equal_jobs(bench, jobs, host);
  for (HostJob& job : all) job.loader.io = "threads";  // whose reads the kernel counts
  FORELOAD_ASSIGN(Crew crew, start_jobs(bench, all));
  FORELOAD_ASSIGN(const auto sources, ask_all(crew, "epoch", "source"));
  Read read{.source = std::accumulate(sources.begin(), sources.end(), 0.0)};
  for (std::size_t i = 0; i < crew.size(); ++i) {
    FORELOAD_ASSIGN(const Bytes bytes, bytes_read(crew.process(i)));
    read.calls += static_cast<double>(bytes);
  }
  return read;
}

}  // namespace

Status bench_jobs(const HostBench& bench) {
  FORELOAD_ASSIGN(Crew alone, start_warm(bench, 1, ""));
  for (const unsigned jobs : {2u, 4u, 8u}) FORELOAD_TRY(jobs_of(bench, jobs, alone));
  return {};
}

Status bench_source_bytes(const HostBench& bench) {
  constexpr unsigned kJobs = 4;
  FORELOAD_ASSIGN(const Read one, first_epoch(bench, 1, ""));
  FORELOAD_ASSIGN(const Read all, first_epoch(bench, kJobs, bench.fresh_host()));
  bench.report.add("host/jobs_source_bytes", all.source / one.source, "ratio", 1.01, false,
                   fmt::format("bytes from the source in the first epoch of {} jobs in one host, {:.1f} MB / those of "
                               "one job alone; what the kernel says their read calls returned, indexes and all: {:.3f}",
                               kJobs, all.source / 1e6, all.calls / one.calls));
  return {};
}

}  // namespace foreload
