#include "probe/planned_job.h"

#include <algorithm>
#include <utility>

#include "base/machine.h"
#include "loader/order.h"
#include "loader/setup.h"
#include "tier/arena.h"

namespace foreload {
namespace {

constexpr SampleId kLooks = 16;
constexpr Bytes kFinest = 1_MiB;  // of a budget

}  // namespace

Result<PlannedJob> PlannedJob::open(const LoaderOptions& options) {
  LoaderOptions asked = options;
  if (asked.workers == 0u)
    return Error{Code::kInvalid, "prep is measured in this process: --workers 0 leaves nobody to do it"};
  FORELOAD_TRY(check_options(asked));
  FORELOAD_TRY(check_order(asked));
  SourceOptions from = asked.source;
  from.datasets = asked.dataset;
  if (!from.warn) from.warn = asked.warn;
  FORELOAD_ASSIGN(auto source, open_source(from));
  FORELOAD_TRY(check_against(asked, *source));
  FORELOAD_ASSIGN(const Schedule schedule, make_schedule(asked, source->size()));
  FORELOAD_ASSIGN(ChainOptions chosen, choose_chain(asked, *source));
  FORELOAD_ASSIGN(Chain chain, Chain::compile(chosen));
  JobShape shape = job_shape(asked, *source);
  shape.unit = chain.unit();
  FORELOAD_TRY(check_pairs(shape));
  PlannedJob job(std::move(asked), std::move(source), std::move(chosen), std::move(chain));
  job.is_image_ = std::ranges::none_of(job.chain(), [](const Transform& transform) {
    return transform.name == "array" || transform.name == "ragged" || transform.name == "sleeping";
  });
  job.stream_.emplace(schedule, SliceAssignment(shape), StreamOptions{.rank = job.options_.rank});
  job.threads_ = job.options_.workers.value_or(usable_cores());
  FORELOAD_ASSIGN(const SizedPlan sized,
                  size_memory(job.options_, *job.source_, job.chain_, *job.stream_, job.threads_));
  job.budget_ = sized.budget;
  job.room_ = sized.memory.home;
  job.longest_ = sized.longest_sample;
  job.growth_ = sized.memory.growth;
  return job;
}

Bytes PlannedJob::footprint(SampleId id) const {
  const Bytes length = source_->length(id);
  if (length == 0 || length > longest_) return 0;
  return Arena::footprint(growth_ ? Arena::grown(length) : length);
}

Form PlannedJob::form() const {
  if (!is_image_) return Form::kArrays;
  const SampleId step = std::max<SampleId>(source_->size() / kLooks, 1);
  bool crops = true;
  for (SampleId id = 0; id < source_->size(); id += step) crops = crops && !source_->rows(id).empty();
  if (crops) return Form::kCropAddressable;
  return source_->locate(0).shared ? Form::kRecord : Form::kRaw;
}

unsigned PlannedJob::learners() const {
  return learners_here(options_);
}

// Of samples, when this is the room for their homes.
double PlannedJob::kept_share(Bytes home) const {
  const Bytes all = source_->total_bytes() + source_->size() * Arena::footprint(0);
  return std::min(1.0, static_cast<double>(home) / static_cast<double>(std::max<Bytes>(all, 1)));
}

std::optional<Bytes> PlannedJob::kept(Bytes budget) const {
  LoaderOptions options = options_;
  options.memory = std::max<Bytes>(budget, 1);
  options.cache = true;  // if it keeps anything
  options.warn = {};
  const auto sized = size_memory(options, *source_, chain_, *stream_, threads_);
  if (!sized.ok()) return std::nullopt;
  return static_cast<Bytes>(kept_share(sized->memory.home) * static_cast<double>(source_->total_bytes()));
}

Bytes PlannedJob::budget_for(Bytes wanted) const {
  const Bytes most = available_memory();
  const auto enough = [&](Bytes budget) {
    const auto found = kept(budget);
    return found && *found >= std::min(wanted, source_->total_bytes());
  };
  if (!enough(most)) return wanted + (most - std::min(most, kept(most).value_or(0)));
  Bytes low = 0;
  Bytes high = most;
  while (high - low > kFinest) {
    const Bytes middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

JobSetup PlannedJob::setup(Bytes free) const {
  JobSetup setup;
  setup.accelerators = learners();
  setup.hosts = std::max(1u, options_.world / setup.accelerators);
  setup.cores = usable_cores();
  setup.threads = options_.host.empty() ? threads_ * setup.accelerators : threads_;
  setup.partitioned = !options_.peers.empty();
  setup.batch = std::max<std::uint64_t>(1, global_batch_of(options_) / options_.world);
  setup.form = form();
  setup.dtype = options_.dtype;
  setup.cache = options_.cache ? kept(budget_).value_or(0) : 0;
  setup.caches = caches();
  setup.policy = !options_.cache                       ? CachePolicy::kPageCache
                 : options_.eviction == Eviction::kLru ? CachePolicy::kLru
                                                       : CachePolicy::kNeverEvict;
  const Bytes all = source_->total_bytes();
  if (!options_.disk.empty()) setup.disk = options_.disk_bytes > 0 ? std::min(options_.disk_bytes, all) : all;
  const bool past = !options_.storage.empty() || options_.direct_io || source_->locate(0).store != nullptr;
  const Bytes ours = budget_ * caches();
  setup.page_cache = past || free <= ours ? 0 : free - ours;
  return setup;
}

}  // namespace foreload
