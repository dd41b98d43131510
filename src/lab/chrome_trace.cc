// A span is written when it ends ("X": time and duration). The order in which spans of a track end is that of time, and
// a span never begins before the one before it has ended: so their beginnings rise, too. Reads overlap; each takes the
// lowest lane that is free.
#include "lab/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "policy/replay.h"

namespace foreload {

namespace {

constexpr std::size_t kFlushBytes = 64 << 10;
constexpr std::uint64_t kMostLanes = 1000;  // of an origin's reads
constexpr std::uint64_t kMostSlots = 4000;

// Numbers of tracks, in the order in which they are shown.
constexpr std::uint64_t kConsumer = 1;
constexpr std::uint64_t kFetcher = 2;
constexpr std::uint64_t kRequests = 3;
constexpr std::uint64_t kWorkers = 1000;
constexpr std::uint64_t kSlots = 100'000;
constexpr std::uint64_t kReads = 200'000;

constexpr const char* kOriginNames[kOrigins] = {"source", "disk", "peer"};

// "12.345": nanoseconds as microseconds.
std::string microseconds(std::uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

struct Span {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

}  // namespace

class TraceProcess {
 public:
  TraceProcess(ChromeTrace& trace, unsigned process, Time zero) : trace_(trace), process_(process), zero_(zero) {}

  void begin(std::string_view name);
  void take(const Event& event);

 private:
  struct OpenBatch {
    Epoch epoch = 0;
    std::uint64_t step = 0;
    std::uint64_t samples = 0;
    std::uint64_t opened = 0;
    std::optional<std::uint64_t> published;
  };
  struct OpenRead {
    std::size_t origin = 0;
    std::uint64_t lane = 0;
    std::uint64_t started = 0;
    bool fill = false;
  };

  // Nanoseconds since zero.
  std::uint64_t at(Time time) const {
    return time < zero_ ? 0 : static_cast<std::uint64_t>(time.count()) - static_cast<std::uint64_t>(zero_.count());
  }
  static std::uint64_t back(std::uint64_t from, std::uint64_t by) { return from - std::min(from, by); }

  std::uint64_t& track(std::uint64_t number, std::string_view name);
  Span place(std::uint64_t& last, Span wanted) const;
  void span(std::uint64_t track, std::string_view name, Span time, std::string_view args);
  void instant(std::uint64_t track, std::string_view name, const Event& event, std::string_view args);
  void counter(std::string_view name, const Event& event, std::string_view args);

  void waited(const Event& event);
  void delivered(const Event& event);
  void prepared(const Event& event);
  void read_started(const Event& event);
  void read_done(const Event& event);
  void depth(const Event& event);
  void remark(const Event& event);
  void requests(const Event& event);
  void ready(const Event& event, int change);

  ChromeTrace& trace_;
  unsigned process_;
  Time zero_;
  std::map<std::uint64_t, std::uint64_t> tracks_;  // until when each is taken
  std::map<std::uint64_t, OpenBatch> batches_;     // by slot
  std::unordered_map<SampleId, OpenRead> reads_;
  std::set<std::uint64_t> free_lanes_[kOrigins];
  std::uint64_t lanes_[kOrigins] = {};
  std::uint64_t depth_[kOrigins] = {};
  std::uint64_t ready_ = 0;
  bool consumed_ = false;
};

void TraceProcess::begin(std::string_view name) {
  trace_.put(
      fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", process_, quoted(name)));
}

// Until when the track is taken; it gets its name when it is first used.
std::uint64_t& TraceProcess::track(std::uint64_t number, std::string_view name) {
  const auto [found, is_new] = tracks_.emplace(number, 0);
  if (is_new) {
    trace_.put(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})", process_,
                           number, name));
    trace_.put(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
                           process_, number, number));
  }
  return found->second;
}

Span TraceProcess::place(std::uint64_t& last, Span wanted) const {
  const std::uint64_t from = std::max(wanted.from, last);
  last = std::max(from, wanted.to);
  return {from, last};
}

void TraceProcess::span(std::uint64_t number, std::string_view name, Span time, std::string_view args) {
  ++trace_.spans_;
  trace_.put(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","args":{{{}}}}})", process_,
                         number, microseconds(time.from), microseconds(time.to - time.from), name, args));
}

void TraceProcess::instant(std::uint64_t number, std::string_view name, const Event& event, std::string_view args) {
  trace_.put(fmt::format(R"({{"ph":"i","s":"t","pid":{},"tid":{},"ts":{},"name":"{}","args":{{{}}}}})", process_,
                         number, microseconds(at(event.time)), name, args));
}

void TraceProcess::counter(std::string_view name, const Event& event, std::string_view args) {
  trace_.put(fmt::format(R"({{"ph":"C","pid":{},"ts":{},"name":"{}","args":{{{}}}}})", process_,
                         microseconds(at(event.time)), name, args));
}

void TraceProcess::take(const Event& event) {
  switch (event.kind) {
    case EventKind::kSlotOpened:
      batches_[event.b] = {event.epoch, event.a, event.c, at(event.time), std::nullopt};
      if (batches_.size() <= kMostSlots) return;
      batches_.erase(event.b);
      ++trace_.left_out_;
      return;
    case EventKind::kPublished:
      if (const auto found = batches_.find(event.b); found != batches_.end()) found->second.published = at(event.time);
      return ready(event, 1);
    case EventKind::kWaited:
      return waited(event);
    case EventKind::kDelivered:
      ready(event, -1);
      return delivered(event);
    case EventKind::kPrepDone:
      return prepared(event);
    case EventKind::kReadStarted:
      return read_started(event);
    case EventKind::kReadDone:
      return read_done(event);
    case EventKind::kDepth:
      return depth(event);
    default:
      remark(event);
      requests(event);
  }
}

// Between two batches the consumer has one: a step of training.
void TraceProcess::waited(const Event& event) {
  std::uint64_t& last = track(kConsumer, "consumer: next()");
  const std::uint64_t before = last;
  const std::uint64_t end = at(event.time);
  const std::uint64_t bytes_there = back(end, event.c);
  const Span whole = place(last, {back(bytes_there, event.b), end});
  if (consumed_ && whole.from > before) span(kConsumer, "step", {before, whole.from}, "");
  consumed_ = true;
  if (whole.to == whole.from) return;
  const std::uint64_t middle = std::clamp(bytes_there, whole.from, whole.to);
  const std::string args = fmt::format(R"("epoch":{},"step":{})", event.epoch, event.a);
  span(kConsumer, "waits", whole, args);
  if (middle > whole.from) span(kConsumer, "for bytes", {whole.from, middle}, args);
  if (whole.to > middle) span(kConsumer, "for prep", {middle, whole.to}, args);
}

void TraceProcess::delivered(const Event& event) {
  const auto found = batches_.find(event.b);
  if (found == batches_.end()) return;
  const OpenBatch batch = found->second;
  batches_.erase(found);
  if (batch.epoch != event.epoch || batch.step != event.a) return;
  const std::uint64_t number = kSlots + event.b % kMostSlots;
  const Span whole = place(track(number, fmt::format("ring slot {}", event.b)), {batch.opened, at(event.time)});
  const std::string args = fmt::format(R"("epoch":{},"step":{},"samples":{})", batch.epoch, batch.step, batch.samples);
  span(number, "batch", whole, args);
  if (!batch.published) return;
  const std::uint64_t middle = std::clamp(*batch.published, whole.from, whole.to);
  span(number, "is prepared", {whole.from, middle}, args);
  span(number, "is ready", {middle, whole.to}, args);
}

void TraceProcess::prepared(const Event& event) {
  const std::uint64_t number = kWorkers + event.thread;
  const std::uint64_t end = at(event.time);
  const Span time = place(track(number, fmt::format("prep thread {}", event.thread)), {back(end, event.b), end});
  span(number, "prep", time, fmt::format(R"("id":{},"epoch":{},"position":{})", event.a, event.epoch, event.position));
}

void TraceProcess::read_started(const Event& event) {
  const ReadFields fields = ReadFields::unpack(event.c);
  const auto origin = static_cast<std::size_t>(fields.origin) % kOrigins;
  OpenRead read{.origin = origin, .started = at(event.time), .fill = fields.fill};
  std::set<std::uint64_t>& lanes = free_lanes_[origin];
  if (lanes.empty() && lanes_[origin] == kMostLanes) {
    ++trace_.left_out_;
    return;
  }
  read.lane = lanes.empty() ? lanes_[origin]++ : *lanes.begin();
  lanes.erase(read.lane);
  const auto [found, is_new] = reads_.emplace(event.a, read);
  if (is_new) return;
  free_lanes_[found->second.origin].insert(found->second.lane);  // its end is not in the record
  found->second = read;
}

void TraceProcess::read_done(const Event& event) {
  const auto found = reads_.find(event.a);
  if (found == reads_.end()) return;
  const OpenRead read = found->second;
  reads_.erase(found);
  free_lanes_[read.origin].insert(read.lane);
  const std::uint64_t number = kReads + read.origin * kMostLanes + read.lane;
  std::uint64_t& last = track(number, fmt::format("read from {} {}", kOriginNames[read.origin], read.lane + 1));
  span(number, read.fill ? "fill" : "read", place(last, {read.started, at(event.time)}),
       fmt::format(R"("id":{},"bytes":{})", event.a, event.b));
}

void TraceProcess::depth(const Event& event) {
  depth_[event.c % kOrigins] = event.a;
  counter("reads at once", event, fmt::format(R"("source":{},"disk":{},"peer":{})", depth_[0], depth_[1], depth_[2]));
}

void TraceProcess::ready(const Event& event, int change) {
  if (change < 0 && ready_ == 0) return;
  ready_ = change < 0 ? ready_ - 1 : ready_ + 1;
  counter("batches ready", event, fmt::format(R"("batches":{})", ready_));
}

void TraceProcess::remark(const Event& event) {
  const std::string id = fmt::format(R"("id":{})", event.a);
  const auto of_fetcher = [&](std::string_view name) {
    (void)track(kFetcher, "fetcher");
    instant(kFetcher, name, event, id);
  };
  const auto of_consumer = [&](std::string_view name) {
    (void)track(kConsumer, "consumer: next()");
    instant(kConsumer, name, event, fmt::format(R"("epoch":{})", event.epoch));
  };
  switch (event.kind) {
    case EventKind::kReadRetried:
      return of_fetcher("read again");
    case EventKind::kReplaced:
      return of_fetcher("bad sample replaced");
    case EventKind::kDiskDropped:
      return of_fetcher("wrong on disk");
    case EventKind::kEpochEnd:
      return of_consumer("epoch ends");
    case EventKind::kSeek:
      return of_consumer("seek");
    default:
      return;
  }
}

void TraceProcess::requests(const Event& event) {
  const auto note = [&](std::string_view name, std::string_view args) {
    (void)track(kRequests, "object requests");
    instant(kRequests, name, event, args);
  };
  switch (event.kind) {
    case EventKind::kHedged:
      return note("sent twice", fmt::format(R"("silent_us":{})", microseconds(event.b)));
    case EventKind::kThrottled:
      return note("throttled", fmt::format(R"("window":{})", event.c));
    case EventKind::kPaused:
      return note("failed", fmt::format(R"("attempts":{})", static_cast<std::uint32_t>(event.a)));
    case EventKind::kSentAgain:
      return note("sent again", "");
    default:
      return;
  }
}

void ChromeTrace::put(std::string_view event) {
  if (any_) buffer_ += ",\n";
  any_ = true;
  buffer_ += event;
  if (buffer_.size() >= kFlushBytes) flush();
}

void ChromeTrace::flush() {
  if (status_.ok()) status_ = sink_(buffer_);
  buffer_.clear();
}

void ChromeTrace::add(std::span<const Event> events, std::string_view name, Time zero) {
  TraceProcess process(*this, ++processes_, zero);
  process.begin(name);
  for (const Event& event : events) {
    if (!status_.ok()) return;
    process.take(event);
  }
}

Status ChromeTrace::finish() {
  buffer_ += "\n]}\n";
  flush();
  return status_;
}

}  // namespace foreload
