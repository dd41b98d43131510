// Learners in step with each other, as ranks of one training: the global step ends when the slowest has its batch. In
// one host the workers of all prepare what is needed soonest; private loaders have only their own. Prep that sleeps
// shows what 8 workers do, whatever the cores of this machine are.
#include <array>
#include <thread>

#include "base/clock.h"
#include "base/machine.h"
#include "host_parts.h"
#include "probe/loader_rates.h"
#include "probe/sleeping_op.h"
#include "probe/storage_epochs.h"
#include "probe/storage_set.h"
#include "tier/shared_arena.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kLearners = 4, kWorkersEach = 2, kWorkers = kLearners * kWorkersEach;
constexpr unsigned kBatch = 16;
constexpr unsigned kPeerRounds = 3;  // figures without a goal
constexpr Duration kWindow = 1500ms;
constexpr Duration kPause = 300ms;  // until the others have filled their rings again

// `slots`: one that the learner holds, and its look-ahead.
HostJob learner_job(LoaderOptions options, unsigned ahead, unsigned host_cores) {
  options.batch = kBatch;
  options.held_batches = 1;
  options.workers = kWorkersEach;
  return {.loader = std::move(options), .slots = ahead + 1, .host_cores = host_cores};
}

// Global steps per second, without the batches that were ready before.
Result<double> step_rate(Crew& crew, unsigned stock) {
  std::this_thread::sleep_for(kPause);
  for (unsigned i = 0; i < stock; ++i) FORELOAD_TRY(ask_all(crew, "step", "samples"));
  unsigned steps = 0;
  const Time start = now();
  Time last = start;
  for (; last - start < kWindow; last = now()) {
    FORELOAD_TRY(ask_all(crew, "step", "samples"));
    ++steps;
  }
  return steps / seconds(last - start);
}

// The same learners, with loaders of their own and in one host.
struct Pair {
  Crew apart;
  Crew together;
  unsigned stock = 0;
  std::vector<double> ratios{}, apart_rates{}, together_rates{};

  Status measure() {
    FORELOAD_ASSIGN(const double theirs, step_rate(apart, stock));
    FORELOAD_ASSIGN(const double ours, step_rate(together, stock));
    ratios.push_back(ours / theirs);
    apart_rates.push_back(theirs);
    together_rates.push_back(ours);
    return {};
  }
  std::string rates() const {
    return fmt::format("{:.1f} / {:.1f} global steps/s", median(together_rates), median(apart_rates));
  }
};

// `shared`: the budget of the host.
Result<Pair> start_pair(const HostBench& bench, std::vector<HostJob> jobs, Bytes shared) {
  FORELOAD_ASSIGN(Crew apart, start_jobs(bench, jobs));
  const std::string host = bench.fresh_host();
  for (HostJob& job : jobs) {
    job.loader.host = host;
    job.loader.memory = shared;
  }
  const unsigned stock = jobs[0].slots + 1;
  FORELOAD_ASSIGN(Crew together, start_jobs(bench, jobs));
  return Pair{std::move(apart), std::move(together), stock};
}

// One learner's samples take four times as long.
Status larger_samples(const HostBench& bench) {
  constexpr Bytes kSmall = 5'000;
  constexpr double kRate = 1e6;
  FORELOAD_ASSIGN(const StorageSet small, StorageSet::make(bench.work, 512, kSmall));
  FORELOAD_ASSIGN(const StorageSet large, StorageSet::make(bench.work, 512, 4 * kSmall));
  std::vector<HostJob> jobs;
  for (unsigned i = 0; i < kLearners; ++i) {
    LoaderOptions options = (i == 0 ? large : small).options();
    options.chain = {sleeping(kRate)};
    options.seed = i;  // streams of their own
    options.memory = 64_MiB;
    jobs.push_back(learner_job(std::move(options), 2, kWorkers));
  }
  FORELOAD_ASSIGN(Pair pair, start_pair(bench, jobs, 512_MiB));
  for (unsigned round = 0; round < bench.rounds; ++round) FORELOAD_TRY(pair.measure());
  bench.report.add(
      "host/balance", median(pair.ratios), "ratio", 1.4, true,
      fmt::format("{} in one host / private; {} learners in {} processes, in step, batch {}, look-ahead 2; prep sleeps "
                  "bytes/rate, {} workers in all; one learner's samples are 4 times as large; median of {} rounds",
                  pair.rates(), kLearners, kLearners, kBatch, kWorkers, bench.rounds));
  return {};
}

struct Half {
  const StorageSet& set;
  LoaderOptions options;  // private: memory for half of the samples
  Bytes shared = 0;       // of a host: for the same
};

Result<Pair> start_half_cached(const HostBench& bench, const Half& half, unsigned ahead) {
  std::vector<HostJob> jobs;
  for (unsigned i = 0; i < kLearners; ++i) {
    jobs.push_back(learner_job(half.options, ahead, kWorkers));
    jobs.back().loader.seed = i;  // streams of their own
  }
  return start_pair(bench, jobs, half.shared);
}

// All at the same time. Homes are those of the first epoch's first samples, so misses are random only after it.
struct Cached {  // percent of the set
  double apart = 0;
  double together = 0;
};
Result<Cached> first_epoch(std::vector<Pair>& pairs, Bytes set) {
  for (Pair& pair : pairs) {
    for (Crew* crew : {&pair.apart, &pair.together}) FORELOAD_TRY(crew->tell("epoch"));
  }
  Cached cached;
  for (Pair& pair : pairs) {
    FORELOAD_ASSIGN(const auto apart, pair.apart.answers(60s));
    FORELOAD_ASSIGN(const auto together, pair.together.answers(60s));
    FORELOAD_ASSIGN(cached.apart, number_in(apart[0], "cached"));
    FORELOAD_ASSIGN(cached.together, number_in(together[0], "cached"));
  }
  const auto all = static_cast<double>(set);
  return Cached{100 * cached.apart / all, 100 * cached.together / all};
}

// Half of the samples are cached, and the others come from storage that is about as fast as prep: batches with more of
// them are late.
Status random_misses(const HostBench& bench) {
  constexpr Bytes kLength = 22'000;
  constexpr double kPrepSeconds = 0.0025;
  constexpr std::array kAhead{1u, 2u, 4u};
  FORELOAD_ASSIGN(const StorageSet set, StorageSet::make(bench.work, 5000, kLength));
  Half half{set, set.options()};
  half.options.chain = {sleeping(kLength / kPrepSeconds)};
  half.options.workers = kWorkersEach;
  half.options.storage = "10MB/s";
  FORELOAD_ASSIGN(half.options.memory, budget_for_cache(half.options, set.bytes() / 2));
  half.shared = 2 * (set.bytes() / 2 + SharedArena::table_bytes(set.size()));  // half of it is for streams
  std::vector<Pair> pairs;
  for (const unsigned ahead : kAhead) {
    FORELOAD_ASSIGN(Pair pair, start_half_cached(bench, half, ahead));
    pairs.push_back(std::move(pair));
  }
  FORELOAD_ASSIGN(const auto cached, first_epoch(pairs, set.bytes()));
  for (unsigned round = 0; round < kPeerRounds; ++round) {
    for (Pair& pair : pairs) FORELOAD_TRY(pair.measure());
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    bench.report.note(
        fmt::format("host/balance_misses_ahead{}", kAhead[i]), median(pairs[i].ratios), "ratio",
        fmt::format(
            "{} in one host / private; {} learners in step, batch {}, look-ahead {}; prep sleeps {} ms a sample, "
            "{} workers; {:.0f} % / {:.0f} % cached, 10 MB/s of storage for each; median of {} rounds",
            pairs[i].rates(), kLearners, kBatch, kAhead[i], 1e3 * kPrepSeconds, kWorkers, cached.together, cached.apart,
            kPeerRounds));
  }
  return {};
}

Status real_decode(const HostBench& bench) {
  std::vector<HostJob> jobs;
  for (unsigned i = 0; i < kLearners; ++i) {
    jobs.push_back(learner_job(bench.picture_options(), 2, 0));
    jobs.back().loader.rank = i;
    jobs.back().loader.world = kLearners;
  }
  FORELOAD_ASSIGN(Pair pair, start_pair(bench, jobs, jobs[0].loader.memory));
  for (Crew* crew : {&pair.apart, &pair.together}) FORELOAD_TRY(ask_all(*crew, "warm", "cached"));
  for (unsigned round = 0; round < kPeerRounds; ++round) FORELOAD_TRY(pair.measure());
  bench.report.note(
      "host/balance_decode", median(pair.ratios), "ratio",
      fmt::format("{} in one host / private; {} ranks in step, batch {}, look-ahead 2, {} workers each, {} "
                  "cores; {}; median of {} rounds",
                  pair.rates(), kLearners, kBatch, kWorkersEach, usable_cores(), kPictures, kPeerRounds));
  return {};
}

}  // namespace

Status bench_balance(const HostBench& bench) {
  FORELOAD_TRY(larger_samples(bench));
  FORELOAD_TRY(random_misses(bench));
  return real_decode(bench);
}

}  // namespace foreload
