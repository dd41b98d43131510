#include "probe/measure_prep.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "loader/setup.h"
#include "probe/loader_rates.h"
#include "probe/prep_stages.h"
#include "probe/specimen.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSlices = 4;  // windows over which the stages go through all samples
constexpr double kStagesTime = 0.12;
constexpr double kThreadsTime = 0.3;  // over all numbers of threads
constexpr double kMemoryTime = 0.05;
constexpr Duration kWindow = 200ms;
constexpr Duration kMemoryWindow = 50ms;
constexpr Duration kLongestFill = 3s;
constexpr double kLeastPass = 0.02;  // seconds that a window's pass over its samples should take, or it is repeated
constexpr unsigned kMostPasses = 1000;

// Samples that the chain takes, a slice for every window.
using Slices = std::vector<std::vector<PrepSample>>;

Slices slices_of(const LoadedSamples& loaded, const Source& source, PrepStages& stages) {
  Slices slices(std::min(kSlices, loaded.samples.size()));
  std::size_t good = 0;
  for (std::size_t i = 0; i < loaded.samples.size(); ++i) {
    const PrepSample sample{loaded.samples[i], source.rows(i)};
    if (stages.whole({&sample, 1}, 0).ok()) slices[good++ % slices.size()].push_back(sample);
  }
  std::erase_if(slices, [](const auto& slice) { return slice.empty(); });
  return slices;
}

struct StageWindows {
  std::vector<double> decode;
  std::vector<double> pixels;
  std::vector<double> normalise;
};

// Seconds per sample; stages of one window have the same samples and crops. The value that decides when to end is that
// of the whole chain.
Result<Figure> stage_windows(PrepStages& stages, const Slices& slices, const Allowance& allowance,
                             StageWindows& windows) {
  unsigned round = 0;
  FORELOAD_ASSIGN(const double once, stages.whole(slices.front(), round));
  const auto passes = static_cast<unsigned>(std::clamp(kLeastPass / std::max(once, 1e-9), 1.0, kMostPasses + 0.0));
  const Window window = [&]() -> Result<std::optional<double>> {
    const auto& slice = slices[round % slices.size()];
    const auto per_sample = [&](auto pass) -> Result<double> {
      double all = 0;
      for (unsigned i = 0; i < passes; ++i) {
        FORELOAD_ASSIGN(const double seconds, (stages.*pass)(slice, round));
        all += seconds;
      }
      return all / passes / static_cast<double>(slice.size());
    };
    ++round;
    FORELOAD_ASSIGN(const double whole, per_sample(&PrepStages::whole));
    double before = 0;
    if (stages.is_image()) {
      FORELOAD_ASSIGN(before, per_sample(&PrepStages::decode));
      windows.decode.push_back(before);
    }
    if (stages.separates_pixels()) {
      FORELOAD_ASSIGN(const double pixels, per_sample(&PrepStages::pixels));
      windows.pixels.push_back(std::max(pixels - before, 0.0));
      before = pixels;
    }
    windows.normalise.push_back(std::max(whole - before, 0.0));
    return std::optional(whole);
  };
  return repeat_windows(allowance, allowance.deadline(kStagesTime), window, {.least = 8});
}

void add_stages(const PrepStages& stages, const StageWindows& windows, Measured& measured) {
  if (!stages.is_image()) {
    measured.stages.push_back({"copy", figure_of(windows.normalise)});
    return;
  }
  measured.stages.push_back({"decode", figure_of(windows.decode)});
  if (stages.separates_pixels()) {
    measured.stages.push_back({"crop+resize", figure_of(windows.pixels)});
    measured.stages.push_back({"normalise", figure_of(windows.normalise)});
    return;
  }
  measured.stages.push_back({"crop+resize", figure_of(windows.normalise)});
  measured.missing.push_back({"normalise", "this chain can not do without it, so it is part of crop+resize"});
}

// Bytes or samples per second between batches that arrive.
class LoaderWindows {
 public:
  explicit LoaderWindows(Loader& loader) : loader_(loader) {}

  // Waits until all samples are in memory and uses up what was prepared meanwhile.
  Status begin(const Allowance& allowance) {
    const Time deadline = now() + kLongestFill;
    while (!loader_.stats().filled && now() < deadline) {
      FORELOAD_TRY(allowance.go_on());
      std::this_thread::sleep_for(2ms);
    }
    for (unsigned stock = loader_.stats().ring_slots; stock > 0; --stock) FORELOAD_TRY(loader_.next());
    start_ = now();
    return {};
  }

  struct Amount {
    std::uint64_t samples = 0;
    Bytes bytes = 0;
    double seconds = 0;
    double cpu = 0;
  };
  Result<Amount> next(Duration least) {
    Amount amount;
    const double cpu = cpu_seconds();
    Time last = start_;
    while (last - start_ < least) {
      FORELOAD_ASSIGN(const auto batch, loader_.next());
      if (!batch) continue;
      last = now();
      amount.samples += batch->size();
      amount.bytes += batch->data().size();
    }
    amount.seconds = seconds(last - start_);
    amount.cpu = cpu_seconds() - cpu;
    start_ = last;
    return amount;
  }

 private:
  Loader& loader_;
  Time start_{};
};

// What the loader does for a sample beside the chain.
void add_collate(std::vector<double> cpu_per_sample, Measured& measured) {
  double chain = 0;
  for (const PrepStage& stage : measured.stages) chain += stage.name == "read" ? 0 : stage.seconds.value;
  if (chain == 0) return;
  for (double& each : cpu_per_sample) each = std::max(each - chain, 0.0);
  measured.stages.push_back({"collate", figure_of(std::move(cpu_per_sample))});
}

}  // namespace

Status measure_stages(const LoaderOptions& options, Allowance& allowance, Measured& measured) {
  allowance.tell("prep, by stage", 0.6);
  FORELOAD_ASSIGN(const std::unique_ptr<Source> source, open_dataset(options));
  FORELOAD_ASSIGN(const LoadedSamples loaded, load_samples(*source, source->total_bytes()));
  FORELOAD_ASSIGN(const ChainOptions chain, choose_chain(options, *source));
  FORELOAD_ASSIGN(PrepStages stages, PrepStages::make(chain));
  const Slices slices = slices_of(loaded, *source, stages);
  if (slices.empty()) return Error{Code::kBadSample, "the chain takes none of the samples that were tried"};
  StageWindows windows;
  FORELOAD_ASSIGN(const Figure whole, stage_windows(stages, slices, allowance, windows));
  if (!whole.known()) return no_time_left();
  add_stages(stages, windows, measured);
  return {};
}

std::vector<unsigned> thread_counts(unsigned cores, std::optional<unsigned> asked) {
  std::set<unsigned> counts{cores};
  for (unsigned threads = 1; threads < cores; threads *= 2) counts.insert(threads);
  if (asked.value_or(0) > 0 && *asked < cores) counts.insert(*asked);
  return {counts.begin(), counts.end()};
}

Status measure_threads(const LoaderOptions& options, std::optional<unsigned> asked, Allowance& allowance,
                       Measured& measured) {
  const std::vector<unsigned> counts = thread_counts(usable_cores(), asked);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto share = static_cast<double>(i) / static_cast<double>(counts.size());
    allowance.tell(fmt::format("prep, {}", counted(counts[i], "thread")), 0.65 + 0.2 * share);
    LoaderOptions with = options;
    with.workers = counts[i];
    FORELOAD_ASSIGN(Loader loader, Loader::open(with));
    LoaderWindows windows(loader);
    FORELOAD_TRY(windows.begin(allowance));
    std::vector<double> cpu;
    const Window window = [&]() -> Result<std::optional<double>> {
      FORELOAD_ASSIGN(const LoaderWindows::Amount amount, windows.next(kWindow));
      cpu.push_back(amount.cpu / static_cast<double>(amount.samples));
      return std::optional(static_cast<double>(amount.samples) / amount.seconds);
    };
    const Time deadline = allowance.deadline(kThreadsTime / static_cast<double>(counts.size()));
    FORELOAD_ASSIGN(const Figure rate, repeat_windows(allowance, deadline, window));
    if (!rate.known()) return no_time_left();
    measured.prep.push_back({counts[i], rate});
    if (counts[i] == 1) add_collate(std::move(cpu), measured);
  }
  return {};
}

Status measure_memory(const LoaderOptions& options, Allowance& allowance, Measured& measured) {
  allowance.tell("memory tier", 0.55);
  LoaderOptions plain = options;
  FORELOAD_ASSIGN(const std::unique_ptr<Source> source, open_dataset(options));
  plain.chain = {ragged(DType::kU8, source->max_length(), {.headerless = true})};
  FORELOAD_ASSIGN(Loader loader, Loader::open(plain));
  LoaderWindows windows(loader);
  FORELOAD_TRY(windows.begin(allowance));
  const Window window = [&]() -> Result<std::optional<double>> {
    FORELOAD_ASSIGN(const LoaderWindows::Amount amount, windows.next(kMemoryWindow));
    return std::optional(static_cast<double>(amount.bytes) / amount.seconds);
  };
  FORELOAD_ASSIGN(measured.memory, repeat_windows(allowance, allowance.deadline(kMemoryTime), window));
  if (!measured.memory.known()) return no_time_left();
  return {};
}

}  // namespace foreload
