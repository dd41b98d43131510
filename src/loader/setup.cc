#include "loader/setup.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "base/machine.h"
#include "base/text.h"
#include "loader/order.h"
#include "pipeline/fetcher.h"
#include "pipeline/rewriter.h"
#include "pipeline/ring.h"
#include "policy/eviction.h"
#include "source/describe.h"
#include "source/extent_reader.h"
#include "source/local_source.h"
#include "store/http_client.h"
#include "tier/arena.h"
#include "tier/disk_tier.h"

namespace foreload {
namespace {

constexpr Bytes kPeek = 64_KiB;
constexpr SampleId kMostPeeks = 16;
constexpr unsigned kMostThreads = 256;
constexpr Bytes kProcess = 24_MiB;
constexpr Bytes kHeapOfThread = 1_MiB;
constexpr unsigned kReaderThreads = 35;  // of the read engine's pool, with fetcher, disk and signals
constexpr unsigned kMostHeld = 32;

Error invalid(std::string message) {
  return {Code::kInvalid, std::move(message)};
}

// The beginning of a sample, enough to see what it is.
Result<std::vector<std::byte>> peek(const Source& source, SampleId id) {
  const Extent extent = source.locate(id);
  HttpClient client;
  std::vector<std::byte> bytes(std::min(extent.length, kPeek));
  FORELOAD_ASSIGN(const FileStamp found, ExtentReader(client).read(extent, bytes));
  if (found != extent.stamp) return data_changed(source, id, found);
  return bytes;
}

// The chain that suits the first samples; bad ones are passed over, because their turn comes later.
Result<std::vector<Transform>> suitable_chain(const Source& source) {
  for (SampleId id = 0; id < std::min(source.size(), kMostPeeks); ++id) {
    if (source.length(id) == 0) continue;
    FORELOAD_ASSIGN(const std::vector<std::byte> bytes, peek(source, id));
    std::vector<Transform> chain = default_chain(bytes);
    if (!chain.empty()) return chain;
  }
  return invalid(
      fmt::format("the first samples of {} are neither images nor .npy arrays, so no transforms can be chosen "
                  "for them; name them, for example array(u8, 3:32:32, headerless=1)",
                  source.uri()));
}

}  // namespace

Status check_options(const LoaderOptions& options) {
  if (options.dataset.empty()) return invalid("no dataset was given: name a folder or tar files");
  if (options.batch == 0 && options.global_batch == 0) return invalid("batch is 0: it must be at least 1");
  if (options.batch > (1ull << 32) || options.global_batch > (1ull << 40)) {
    return invalid(fmt::format("batch {} is out of range", std::max(options.batch, options.global_batch)));
  }
  if (options.world == 0) return invalid("world is 0: it must be at least 1");
  if (options.rank >= options.world) {
    return invalid(fmt::format("rank {} does not exist in a world of {}: ranks are 0 … {}", options.rank, options.world,
                               options.world - 1));
  }
  if (options.local_world > options.world) {
    return invalid(fmt::format("local_world {} is more than the world of {}", options.local_world, options.world));
  }
  if (options.workers.value_or(0) > kMostThreads) {
    return invalid(fmt::format("workers {} is out of range: at most {}", *options.workers, kMostThreads));
  }
  if (options.workers == 0u && options.host.empty()) {
    return invalid(
        "workers 0 leaves all prep to other processes of a host, and there is none: name a host and start `foreload "
        "agent --host NAME`, or leave out workers");
  }
  if (options.held_batches == 0 || options.held_batches > kMostHeld) {
    return invalid(fmt::format("held_batches {} is out of range: 1 … {}", options.held_batches, kMostHeld));
  }
  if (!options.io.empty() && options.io != "uring" && options.io != "threads") {
    return invalid(fmt::format("io \"{}\" is unknown: \"uring\", \"threads\" or nothing", options.io));
  }
  if (options.rewrite == Rewrite::kOn && evicts(options.eviction)) {
    return invalid(
        "rewrite on and eviction belady or lru do not go together: samples are rewritten where they stay. Leave out "
        "one of them");
  }
  return {};
}

JoinOptions join_options(const LoaderOptions& options, const Seams& seams) {
  return {.budget = options.memory, .own_budget = available_memory() / 2, .cores = seams.host_cores};
}

std::uint32_t learners_here(const LoaderOptions& options) {
  return options.local_world != 0 ? options.local_world : options.world;
}

JobShape job_shape(const LoaderOptions& options, const Source& source) {
  return {.samples = positions_per_epoch(options, source.size()),
          .global_batch = global_batch_of(options),
          .world = options.world,
          .last_batch = options.last_batch};
}

Status check_pairs(const JobShape& shape) {
  if (shape.unit == 1 || (shape.global_batch % 2 == 0 && shape.global_batch / 2 >= shape.world)) return {};
  return invalid(fmt::format(
      "mixup and cutmix mix pairs of samples, so the global batch must be even and have two samples for each "
      "of {}; it is {}: change batch or global_batch",
      counted(shape.world, "rank"), shape.global_batch));
}

Status check_against(const LoaderOptions& options, const Source& source) {
  const JobShape shape = job_shape(options, source);
  // Who asks for ragged or padded batches by name wants them also when they are all that there is.
  const bool asked = options.last_batch == LastBatch::kRagged || options.last_batch == LastBatch::kPad;
  if (asked) return {};
  const std::string size = counted(source.size(), "sample") +
                           (shape.samples == source.size() ? "" : fmt::format(", {} per epoch", shape.samples));
  if (options.world > shape.samples) {
    return invalid(
        fmt::format("a world of {} is larger than the dataset {}, which has {}; use at most {}, or choose the last "
                    "batch (--last, last_batch): \"ragged\" gives some ranks empty batches, \"pad\" repeats samples",
                    options.world, source.uri(), size, counted(shape.samples, "rank")));
  }
  if (shape.global_batch <= shape.samples) return {};
  const std::string sum = fmt::format("{} per rank, {}", options.batch, counted(options.world, "rank"));
  return invalid(fmt::format(
      "a global batch of {} ({}) is larger than the dataset {}, which has {}; use a smaller batch, or "
      "choose the last batch (--last, last_batch): \"ragged\" makes it shorter, \"pad\" equal for all ranks",
      shape.global_batch, sum, source.uri(), size));
}

Result<ChainOptions> choose_chain(const LoaderOptions& options, const Source& source) {
  ChainOptions chain{.transforms = options.chain,
                     .dtype = options.dtype,
                     .layout = options.layout,
                     .limits = options.limits,
                     .decode = options.decode};
  if (chain.transforms.empty() && options.source.tokens) {
    chain.transforms = {array(options.source.tokens->dtype, {options.source.tokens->sequence}, true)};
  } else if (chain.transforms.empty()) {
    FORELOAD_ASSIGN(chain.transforms, suitable_chain(source));
  }
  return chain;
}

namespace {

// What the process takes beside the budget: code, heap, and, where addresses are limited, stacks.
Bytes beside_budget(unsigned threads) {
  rlimit addresses{};
  rlimit stack{};
  const bool limited = ::getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY;
  if (!limited || ::getrlimit(RLIMIT_STACK, &stack) != 0) return kProcess;
  const Bytes each = stack.rlim_cur == RLIM_INFINITY ? 8_MiB : stack.rlim_cur;
  return kProcess + (threads + kReaderThreads) * (each + kHeapOfThread);
}

// The asked budget, or what the machine can give without ending this process for it.
Bytes affordable_budget(const LoaderOptions& options, unsigned threads) {
  const Bytes available = available_memory();
  if (options.memory == 0) return available / 2 / learners_here(options);
  const Bytes beside = beside_budget(threads);
  const Bytes most = available > beside ? available - beside : 0;
  if (options.memory <= most) return options.memory;
  if (options.warn) {
    options.warn(
        fmt::format("the memory budget of {} is lowered to {}: {} are available to this process (machine, cgroup or "
                    "ulimit), of which it needs {} beside the budget",
                    format_bytes(options.memory), format_bytes(most), format_bytes(available), format_bytes(beside)));
  }
  return most;
}

}  // namespace

namespace {

// Whether a record index knows rows: of some samples, for some of the datasets.
bool knows_rows(const Source& source) {
  constexpr SampleId kLooks = 64;
  const SampleId step = std::max<SampleId>(source.size() / kLooks, 1);
  for (SampleId id = 0; id < source.size(); id += step) {
    if (!source.rows(id).empty()) return true;
  }
  return false;
}

}  // namespace

ArenaOptions arena_options(std::uint64_t samples, const MemoryPlan& memory) {
  return {.samples = samples,
          .home = memory.home,
          .transit = memory.transit,
          .urgent = memory.urgent,
          .onward = memory.onward,
          .growth = memory.growth};
}

RingOptions ring_options(const Chain& chain, const Stream& stream, const Source& source, unsigned slots) {
  return {.slots = slots,
          .batch = stream.max_batch(),
          .sample_bytes = chain.output().bytes(),
          .ragged_element = chain.ragged_element(),
          .mixes = chain.mixes(),
          .rows = knows_rows(source)};
}

Rewrite rewrite_mode(const LoaderOptions& options) {
  return options.cache && !evicts(options.eviction) ? options.rewrite : Rewrite::kOff;
}

Result<SizedPlan> size_memory(const LoaderOptions& options, const Source& source, const Chain& chain,
                              const Stream& stream, unsigned threads) {
  const std::uint64_t samples = source.size();
  const Bytes longest = std::min(source.max_length(), options.limits.sample_bytes);
  const Bytes mean = Arena::footprint(source.total_bytes() / std::max<std::uint64_t>(samples, 1));
  const std::uint64_t window = std::min(samples, echo_window_of(options));
  const RingOptions slot = ring_options(chain, stream, source, 1);
  const bool rewrites = rewrite_mode(options) != Rewrite::kOff;
  SizedPlan sized;
  sized.budget = affordable_budget(options, threads);
  const MemoryNeeds needs{
      .budget = sized.budget,
      .slot_bytes = Ring::region_bytes(slot) + WorkTable::bytes_per_slot(slot.batch),
      .held_batches = options.held_batches,
      .threads = threads,
      .runner_bytes = chain.runner_bytes(),
      .table_bytes = Arena::overhead(samples) + DimensionTable::bytes_for(samples) + samples / 8 +
                     (rewrites ? Rewriter::bytes_for(samples) : 0) +
                     (options.cache ? eviction_bytes(options.eviction, stream) : 0) +
                     (options.disk.empty() ? 0 : DiskTier::bytes_for(samples)) +
                     options.weights.size() * sizeof(std::uint64_t) + Holds::bytes_for(window) +
                     Fetcher::bytes_ahead(Pacer({.batch = slot.batch}), slot.batch),
      .all_footprint = source.total_bytes() + samples * Arena::footprint(0),
      .growth = rewrites ? Arena::grown(source.total_bytes()) + samples * Arena::grown(0) - source.total_bytes() : 0,
      .longest_footprint = Arena::footprint(longest),
      .mean_footprint = mean,
      .direct = options.direct_io,
      .cache = options.cache,
      .disk = !options.disk.empty(),
      // Of what another process is slow to read, one sample at a time can be read here, too.
      .substitutes = options.on_error == OnError::kReplace || !options.host.empty(),
      .hold = window * mean / 4 * 5,
  };
  FORELOAD_ASSIGN(sized.memory, plan_memory(needs));
  sized.longest_sample = std::min(longest, sized.memory.longest_footprint - (Arena::footprint(longest) - longest));
  return sized;
}

void limit_ahead(SizedPlan& plan, const Seams& seams, const Stream& stream) {
  if (seams.slots == 0) return;
  MemoryPlan& memory = plan.memory;
  memory.slots = std::min(memory.slots, seams.slots);
  memory.transit = std::min(memory.transit, memory.slots * stream.max_batch() * memory.longest_footprint + memory.hold);
}

void remember_dimensions(const Source& source, const DimensionTable& learned) {
  if (learned.known() == 0) return;
  std::vector<Dimensions> all = learned.list();
  std::uint64_t news = 0;
  std::uint64_t missing = 0;
  for (SampleId id = 0; id < all.size(); ++id) {
    if (const auto before = source.dimensions(id)) {
      all[id] = *before;
    } else {
      ++(all[id].width != 0 ? news : missing);
    }
  }
  if (news > 0 && (missing == 0 || news >= all.size() / 10)) (void)store_dimensions(source, all).ok();
}

}  // namespace foreload
