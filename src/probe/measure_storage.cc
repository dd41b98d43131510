// A point is one depth: the stream of reads is kept full, and windows are cut out of it where reads end, each of a
// whole number of rounds, so that neither filling the queue nor its last answers count. Depths are doubled until
// eight times as many reads at once have brought nothing.
//
//   ├ first `depth` reads ┤├── window ──┤├── window ──┤ …          window: ≥ depth reads, and 150 ms or its bytes
//
#include "probe/measure_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "foreload/schedule.h"
#include "probe/piece_source.h"
#include "probe/read_stream.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kMostDepth = 128;
constexpr unsigned kSequentialDepth = 8;
constexpr unsigned kWarmDepth = 16;
constexpr Duration kWindow = 150ms;
constexpr Duration kShortestWindow = 1ms;  // below, the clock and the scheduler are what is measured
constexpr double kGain = 1.04;             // of a doubled depth, to be one
constexpr unsigned kIdleDoublings = 3;     // after which deeper queues are not tried
constexpr double kPointTime = 0.05;        // of the whole
constexpr double kDepthsTime = 0.3;        // of the whole, after which no deeper queue is tried: prep needs time, too
constexpr double kPointBytes = 0.05;
constexpr double kWarmBytes = 0.05;      // of the whole: what the page cache is filled with
constexpr unsigned kWindowsOfPoint = 9;  // for which its bytes have to be enough
constexpr SampleId kLooks = 16;
constexpr Bytes kLongSample = 4_MiB;  // on average: longer ones are read in pieces, as an engine does with O_DIRECT
constexpr Bytes kPiece = 1_MiB;
constexpr std::uint64_t kMostDropped = 8192;  // samples of a point, taken out of the page cache before it

Figure scaled(Figure figure, double factor) {
  for (double* each : {&figure.value, &figure.low, &figure.high}) *each *= factor;
  return figure;
}

const char* coldness_words(Coldness coldness) {
  switch (coldness) {
    case Coldness::kDirect:
      return "past the page cache";
    case Coldness::kDropped:
      return "taken out of the page cache before";
    case Coldness::kAsItIs:
      return "some of them from the page cache: an upper bound";
    case Coldness::kMemory:
      return "of a file system in memory";
    case Coldness::kElsewhere:
      return "objects of a store";
  }
  return "";
}

class StorageMeasurement {
 public:
  StorageMeasurement(const Source& source, const LoaderOptions& options, Allowance& allowance, Measured& measured)
      : source_(source),
        options_(options),
        allowance_(allowance),
        measured_(measured),
        coldness_(find_coldness(source, options.seed)),
        order_({.samples = source.size(), .seed = options.seed}) {}

  // `mean`: length of a sample.
  Status run(Bytes mean);

 private:
  // A stretch of an order of the samples.
  struct Stretch {
    Epoch epoch = 0;  // of a keyed order; with `in_a_row`: which start
    bool in_a_row = false;
    std::uint64_t samples = 0;  // 0: all, one order after the other
    bool again = false;         // the same samples over and over
  };
  struct Point {
    Figure bytes_per_s;
    Figure cpu_per_byte;
    bool too_quick = false;
  };

  Status cold();
  Status warm();
  SampleId sample_at(const Stretch& stretch, std::uint64_t index) const;
  ReadStream::Order order_of(const Stretch& stretch) const;
  Stretch next_stretch();
  void drop(Stretch& stretch);
  Result<Point> point(ReadStream& stream, unsigned depth, const Stretch& stretch);
  void lack(const char* what, std::string why) { measured_.missing.push_back({what, std::move(why)}); }
  void lack_point(const char* what, const Point& point);
  void note_coldness();

  const Source& source_;
  const LoaderOptions& options_;
  Allowance& allowance_;
  Measured& measured_;
  Coldness coldness_;
  Schedule order_;
  Epoch stretches_ = 0;
  Figure read_cpu_;
};

SampleId StorageMeasurement::sample_at(const Stretch& stretch, std::uint64_t index) const {
  const std::uint64_t size = source_.size();
  if (stretch.in_a_row) return (order_.sample_at(stretch.epoch, 0) + index) % size;
  return order_.sample_at(stretch.epoch + index / size, index % size);
}

ReadStream::Order StorageMeasurement::order_of(const Stretch& stretch) const {
  return [this, stretch, index = std::uint64_t{0}]() mutable -> std::optional<SampleId> {
    if (stretch.samples > 0 && index == stretch.samples) {
      if (!stretch.again) return std::nullopt;
      index = 0;
    }
    return sample_at(stretch, index++);
  };
}

StorageMeasurement::Stretch StorageMeasurement::next_stretch() {
  return {.epoch = stretches_++ << 16};
}

// Then no sample may come twice.
void StorageMeasurement::drop(Stretch& stretch) {
  if (coldness_ != Coldness::kDropped) return;
  const Bytes mean = std::max<Bytes>(source_.total_bytes() / source_.size(), 1);
  stretch.samples = std::min({source_.size(), allowance_.bytes(kPointBytes) / mean + kMostDepth, kMostDropped});
  for (std::uint64_t i = 0; i < stretch.samples; ++i) (void)drop_from_page_cache(source_, sample_at(stretch, i));
}

Result<StorageMeasurement::Point> StorageMeasurement::point(ReadStream& stream, unsigned depth,
                                                            const Stretch& stretch) {
  const Bytes bytes = allowance_.bytes(kPointBytes);
  FORELOAD_TRY(stream.begin(order_of(stretch), depth, allowance_));
  const Time deadline = allowance_.deadline(kPointTime);
  const ReadStream::WindowSize size{
      .least = depth, .bytes = bytes / kWindowsOfPoint, .time = kWindow, .deadline = deadline};
  Point point;
  Bytes used = 0;
  std::vector<double> costs;
  const Window window = [&]() -> Result<std::optional<double>> {
    if (used + size.bytes > bytes) return std::optional<double>();
    const double cpu = cpu_seconds();
    FORELOAD_ASSIGN(const ReadWindow read, stream.window(size, allowance_));
    used += read.bytes;
    point.too_quick = read.samples >= size.least && read.elapsed < kShortestWindow;
    if (read.samples < size.least || point.too_quick) return std::optional<double>();
    costs.push_back((cpu_seconds() - cpu) / static_cast<double>(read.bytes));
    return std::optional(read.bytes_per_s());
  };
  FORELOAD_ASSIGN(point.bytes_per_s, repeat_windows(allowance_, deadline, window));
  if (!costs.empty()) costs.erase(costs.begin());  // it paid for the reads before the first window
  point.cpu_per_byte = figure_of(std::move(costs));
  return point;
}

void StorageMeasurement::lack_point(const char* what, const Point& point) {
  if (point.bytes_per_s.known()) return;
  if (point.too_quick) {
    lack(what, fmt::format("{} are read within {}: too little for the clock; a larger dataset tells more",
                           counted(source_.size(), "sample"), format_duration(kShortestWindow)));
  } else {
    lack(what,
         fmt::format("fewer than {} windows of reads ended in the {} and {} that an analysis may take: storage is too "
                     "slow, or the machine too busy",
                     kLeastWindows, format_duration(allowance_.how().time), format_bytes(allowance_.how().most_bytes)));
  }
}

void StorageMeasurement::note_coldness() {
  measured_.storage_how = coldness_words(coldness_);
  if (coldness_ != Coldness::kAsItIs) return;
  lack("storage, cold",
       "neither O_DIRECT nor taking the files out of the page cache works here: what the page cache has comes from "
       "there, so the rates are upper bounds. For cold ones, drop the machine's caches as root (echo 1 > "
       "/proc/sys/vm/drop_caches) and analyze again");
}

Status StorageMeasurement::cold() {
  FORELOAD_ASSIGN(const auto stream, ReadStream::open(source_, {.io = options_.io,
                                                                .storage = options_.storage,
                                                                .direct = coldness_ == Coldness::kDirect,
                                                                .depth = kMostDepth}));
  double best = 0;
  unsigned idle = 0;
  Point last;
  const auto deepest = std::min<std::uint64_t>(stream->max_depth(), source_.size());
  for (unsigned depth = 1; depth <= deepest; depth *= 2) {
    allowance_.tell(fmt::format("storage, {} at once", counted(depth, "read")), 0.05 * static_cast<double>(stretches_));
    Stretch stretch = next_stretch();
    drop(stretch);
    FORELOAD_ASSIGN(last, point(*stream, depth, stretch));
    if (!last.bytes_per_s.known()) break;
    measured_.storage.push_back({depth, last.bytes_per_s});
    read_cpu_ = last.cpu_per_byte;
    idle = last.bytes_per_s.value > best * kGain ? 0 : idle + 1;
    best = std::max(best, last.bytes_per_s.value);
    if (idle == kIdleDoublings) break;
    if (allowance_.used() > kDepthsTime && depth < deepest) {
      lack("storage, more at once",
           fmt::format("the time for it ended after {} at once, which may be too few", counted(depth, "read")));
      break;
    }
  }
  if (measured_.storage.empty()) {
    lack_point("storage", last);
  } else if (!last.bytes_per_s.known()) {
    lack_point("storage, more at once", last);
  }
  allowance_.tell("storage, in a row", 0.45);
  Stretch stretch = next_stretch();
  stretch.in_a_row = true;
  drop(stretch);
  FORELOAD_ASSIGN(last, point(*stream, std::min(stream->max_depth(), kSequentialDepth), stretch));
  measured_.sequential = last.bytes_per_s;
  lack_point("storage, sequential", last);
  return {};
}

// Emulated storage is left out: what a loader's reads cost the processor is the same with it.
Status StorageMeasurement::warm() {
  if (coldness_ == Coldness::kElsewhere) {
    lack("page cache", "the samples are objects of a store: this machine's page cache does not hold them");
    return {};
  }
  allowance_.tell("page cache", 0.5);
  FORELOAD_ASSIGN(const auto stream, ReadStream::open(source_, {.io = options_.io, .depth = kWarmDepth}));
  const Bytes mean = std::max<Bytes>(source_.total_bytes() / source_.size(), 1);
  Stretch stretch = next_stretch();
  stretch.samples = std::min(source_.size(), allowance_.bytes(kWarmBytes) / mean + 1);
  FORELOAD_TRY(stream->begin(order_of(stretch), stream->max_depth(), allowance_));
  const auto look_away = [](SampleId, std::span<const std::byte>) -> Status { return {}; };
  FORELOAD_TRY(stream->read_all(look_away, allowance_.deadline(kPointTime), allowance_));
  stretch.again = true;
  FORELOAD_ASSIGN(const Point warm, point(*stream, stream->max_depth(), stretch));
  if (warm.cpu_per_byte.known()) read_cpu_ = warm.cpu_per_byte;  // as a loader reads, not past the page cache
  if (options_.storage.empty()) {
    measured_.page_cache = warm.bytes_per_s;
    lack_point("page cache", warm);
  } else {
    lack("page cache", "the emulated storage is as slow for what the page cache has");
  }
  return {};
}

Status StorageMeasurement::run(Bytes mean) {
  if (source_.size() < kLeastSamples) {
    const std::string why =
        fmt::format("the dataset has {}: fewer than {} say nothing", counted(source_.size(), "sample"), kLeastSamples);
    for (const char* what : {"storage", "storage, sequential", "page cache"}) lack(what, why);
    return {};
  }
  note_coldness();
  FORELOAD_TRY(cold());
  FORELOAD_TRY(warm());
  if (read_cpu_.known()) measured_.stages.push_back({"read", scaled(read_cpu_, static_cast<double>(mean))});
  return {};
}

}  // namespace

Coldness find_coldness(const Source& source, std::uint64_t seed) {
  const Schedule order({.samples = source.size(), .seed = seed});
  const SampleId looks = std::min<SampleId>(source.size(), kLooks);
  SampleId warm = 0;
  for (SampleId i = 0; i < looks; ++i) {
    const SampleId id = order.sample_at(0, i);
    if (source.locate(id).store != nullptr) return Coldness::kElsewhere;
    if (is_in_memory(source, id)) return Coldness::kMemory;
    if (reads_direct(source, id)) return Coldness::kDirect;
    warm += drop_from_page_cache(source, id).value_or(false) ? 0 : 1;
  }
  return 4 * warm > looks ? Coldness::kAsItIs : Coldness::kDropped;
}

Status measure_storage(const Source& source, const LoaderOptions& options, Allowance& allowance, Measured& measured) {
  const Bytes mean = source.total_bytes() / std::max<std::uint64_t>(source.size(), 1);
  if (mean <= kLongSample) return StorageMeasurement(source, options, allowance, measured).run(mean);
  const PieceSource pieces(source, kPiece);
  return StorageMeasurement(pieces, options, allowance, measured).run(mean);
}

}  // namespace foreload
