#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/machine.h"
#include "probe/analysis.h"
#include "probe/specimen.h"
#include "probe/stop_watch.h"
#include "probe/storage_epochs.h"
#include "probe/windows.h"

namespace foreload {
namespace {

constexpr Bytes kRoomBeside = 1_GiB;  // a cache that holds everything: for batches, scratch and rounding

// Fewer samples, and the memory for the share that is to be kept.
Status adjust(LoaderOptions& options, const RateOptions& how) {
  FORELOAD_ASSIGN(const std::unique_ptr<Source> source, open_dataset(options));
  if (how.most_samples > 0 && how.most_samples < source->size() && options.source.subset.index() == 0) {
    std::vector<SampleId> ids = representative_samples(*source, options.seed, how.most_samples);
    std::sort(ids.begin(), ids.end());
    options.source.subset = std::move(ids);
  }
  options.source.trust_index = true;  // it was looked at a moment ago
  if (!how.cached) return {};
  options.cache = *how.cached > 0;
  FORELOAD_ASSIGN(const std::unique_ptr<Source> chosen, open_dataset(options));
  const Bytes all = chosen->total_bytes();
  const auto kept = static_cast<Bytes>(*how.cached * static_cast<double>(all));
  if (kept >= all) options.memory = all + all / 4 + kRoomBeside;
  if (kept == 0 || kept >= all) return {};
  FORELOAD_ASSIGN(options.memory, budget_for_cache(options, kept));
  return {};
}

}  // namespace

Result<MeasuredRate> measured_rate(LoaderOptions options, const RateOptions& how) {
  options.epochs = 0;
  FORELOAD_TRY(adjust(options, how));
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  FORELOAD_ASSIGN(const auto watch, StopWatch::start(loader, how.stop));
  const double per_batch = how.accelerator > 0 ? static_cast<double>(options.batch) / how.accelerator : 0;
  const auto step = Duration(static_cast<std::int64_t>(1e9 * per_batch));
  MeasuredRate measured{.bytes = loader.source().total_bytes()};
  for (Epoch epoch = 0; epoch < how.warm_up; ++epoch) FORELOAD_TRY(run_epoch(loader, step));
  const double cpu = cpu_seconds();
  const Time end = now() + how.time;
  std::vector<double> rates;
  EpochStats sum;
  while (rates.size() < how.most_epochs && (now() < end || rates.size() < kLeastWindows)) {
    FORELOAD_TRY(run_epoch(loader, step));
    const EpochStats epoch = loader.stats().epochs.back();
    rates.push_back(static_cast<double>(epoch.samples) / seconds(epoch.wall));
    sum.samples += epoch.samples;
    sum.wall += epoch.wall;
    sum.fetch_stall += epoch.fetch_stall;
    sum.prep_stall += epoch.prep_stall;
    sum.memory_bytes += epoch.memory_bytes;
  }
  measured.samples = sum.samples / rates.size();
  // Of whole samples: of those that are not kept, often a part is read.
  const double delivered = static_cast<double>(sum.samples) * static_cast<double>(measured.bytes) /
                           static_cast<double>(std::max<std::uint64_t>(loader.source().size(), 1));
  measured.cached = delivered > 0 ? std::min(1.0, static_cast<double>(sum.memory_bytes) / delivered) : 0;
  measured.fetch_stall = seconds(sum.fetch_stall) / seconds(sum.wall);
  measured.prep_stall = seconds(sum.prep_stall) / seconds(sum.wall);
  measured.cpu_seconds = (cpu_seconds() - cpu) / static_cast<double>(std::max<std::uint64_t>(sum.samples, 1));
  measured.samples_per_s = figure_of(std::move(rates));
  return measured;
}

}  // namespace foreload
