// bench/host: processes that share a host against processes that do not.
//
//   host [--json] [--rounds N] [--only PART…]        parts: slots, one, jobs, bytes, balance, memory, cores
//
// Works in a folder beside the program; the pictures are generated once. The processes are this program again.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/clock.h"
#include "foreload/loader.h"
#include "host_parts.h"
#include "parts.h"
#include "pipeline/ring.h"
#include "probe/generated_dataset.h"
#include "probe/loader_rates.h"
#include "probe/sleeping_op.h"

namespace foreload {

using namespace std::chrono_literals;

std::string HostBench::fresh_host() const {
  static int count = 0;
  return fmt::format("bench-{}-{}", ::getpid(), count++);
}

LoaderOptions HostBench::picture_options() const {
  LoaderOptions options;
  options.dataset = {work + "/images"};
  options.batch = 64;
  options.seed = 1;
  options.memory = 2_GiB;
  options.rewrite = Rewrite::kOff;  // a host does not rewrite
  options.chain = {random_resized_crop(224), random_flip(), normalize(kImageNet)};
  options.source.index_folder = work + "/index";
  return options;
}

Result<Crew> start_jobs(const HostBench& bench, const std::vector<HostJob>& jobs) {
  std::vector<std::vector<std::string>> commands;
  for (const HostJob& job : jobs) commands.push_back({bench.program, "--job", job_text(job)});
  FORELOAD_ASSIGN(Crew crew, Crew::start(commands));
  FORELOAD_ASSIGN(const auto opened, crew.answers(60s));
  for (const std::string& answer : opened) FORELOAD_TRY(number_in(answer, "opened"));
  return crew;
}

Result<std::vector<double>> ask_all(Crew& crew, const std::string& request, const std::string& name) {
  FORELOAD_ASSIGN(const auto answers, crew.ask(request, 60s));
  std::vector<double> numbers;
  for (const std::string& answer : answers) {
    FORELOAD_ASSIGN(const double number, number_in(answer, name));
    numbers.push_back(number);
  }
  return numbers;
}

Result<double> rate_of_all(Crew& crew, double seconds) {
  FORELOAD_ASSIGN(const auto rates, ask_all(crew, fmt::format("rate {}", seconds), "rate"));
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

Result<double> rate_of_equals(Crew& crew, std::uint64_t batches) {
  FORELOAD_ASSIGN(const auto rates, ask_all(crew, fmt::format("take {}", batches), "rate"));
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

namespace {

// A loader alone in a host against one without.
Status one_process(const HostBench& bench) {
  std::vector<double> ratios;
  LoaderOptions with = bench.picture_options();
  with.host = bench.fresh_host();
  FORELOAD_ASSIGN(Loader alone, Loader::open(bench.picture_options()));
  FORELOAD_ASSIGN(Loader in_host, Loader::open(with));
  for (Loader* loader : {&alone, &in_host}) {
    while (loader->position().epoch == 0) FORELOAD_TRY(loader->next());
  }
  for (unsigned round = 0; round < bench.rounds; ++round) {
    wait_until_idle();
    FORELOAD_ASSIGN(const double before, loader_rate(alone, 1s));
    wait_until_idle();
    FORELOAD_ASSIGN(const double ours, loader_rate(in_host, 2s));
    wait_until_idle();
    FORELOAD_ASSIGN(const double after, loader_rate(alone, 1s));
    ratios.push_back(ours / ((before + after) / 2));
  }
  bench.report.add("host/one_process_against_private", median(ratios), "ratio", 0.97, true,
                   fmt::format("next(), {}, batch 64, median of {} interleaved rounds", kPictures, bench.rounds));
  return {};
}

// What one sample costs beside its preparation: ready, claimed, done, its batch published, taken and released.
Status slot_cost(const HostBench& bench) {
  constexpr std::uint64_t kTurns = 200'000;
  FORELOAD_ASSIGN(auto ring, Ring::create({.slots = 2, .batch = 1, .sample_bytes = 64}));
  ring->begin(0);
  std::vector<double> costs;
  for (unsigned round = 0; round < bench.rounds; ++round) {
    const Time start = now();
    for (std::uint64_t n = round * kTurns; n < (round + 1) * kTurns; ++n) {
      const auto slot = ring->free_slot();
      ring->open(*slot, {.number = n, .step = n, .first = n, .count = 1});
      ring->mark_ready({*slot, 0}, {.id = n}, {}, start);
      const auto item = ring->claim();
      if (ring->finish(*item, {})) ring->publish(item->slot);
      ring->release(Ring::kOwnReader, *ring->take(Ring::kOwnReader, n));
    }
    costs.push_back(1e6 * seconds(now() - start) / kTurns);
  }
  bench.report.add("host/slot_cost", median(costs), "us", 2, false,
                   "open, ready, claim, finish, publish, take and release of a slot with one sample, one thread");
  return {};
}

constexpr BenchPart<HostBench> kParts[] = {
    {"slots", slot_cost},       {"one", one_process},     {"jobs", bench_jobs},  {"bytes", bench_source_bytes},
    {"balance", bench_balance}, {"memory", bench_memory}, {"cores", bench_cores}};

Status run(const BenchSettings& settings, BenchReport& report) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const HostBench bench{program.string(), (program.parent_path() / "host-work").string(), settings.rounds, report};
  FORELOAD_TRY(generate_dataset({.folder = bench.work + "/images", .images = 1000, .seed = 1}));
  return run_parts<HostBench>(settings, kParts, bench);
}

int main_with(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "--job") return serve_job(words[1]);
  add_sleeping_op();
  return bench_main<HostBench>("bench/host", words, kParts, run);
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  return foreload::main_with({argv + 1, argv + argc});
}
