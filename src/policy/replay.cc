// Decisions of reads and evictions are events of their own, or stand in the event of what followed from them; each is
// compared where it stands. A policy of requests makes its events by itself: told what the run's policy was told, it
// has to make the same event.
#include "policy/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "policy/pacing.h"
#include "policy/request_policy.h"

namespace foreload {
namespace {

constexpr unsigned kOriginShift = 32;
constexpr unsigned kAskedShift = 40;
constexpr unsigned kFillShift = 48;

// Whatever the record says.
Origin origin_of(std::uint64_t packed) {
  return static_cast<Origin>((packed & 0xff) % kOrigins);
}

class Comparison {
 public:
  const ReplayResult& result() const { return result_; }
  bool is_equal() const { return result_.different == 0; }

  void expect(const Event& event, const char* what, std::uint64_t run, std::uint64_t replayed) {
    ++result_.decisions;
    if (run != replayed) differ(event, fmt::format("{}: the run had {}, the replay {}", what, run, replayed));
  }
  void differ(const Event& event, const std::string& how) {
    if (result_.different++ > 0) return;
    result_.first_difference = fmt::format("at {} ns, {}", std::chrono::nanoseconds(event.time).count(), how);
  }

 private:
  ReplayResult result_;
};

class PacingReplay {
 public:
  void take(const Event& event);
  const ReplayResult& result() const { return comparison_.result(); }

 private:
  void expect(const Event& event, const char* what, std::uint64_t run, std::uint64_t replayed) {
    comparison_.expect(event, what, run, replayed);
  }

  std::optional<Pacer> pacer_;
  std::optional<std::uint64_t> new_depth_;  // that the next kDepth must have
  Comparison comparison_;
};

void PacingReplay::take(const Event& event) {
  if (event.kind == EventKind::kPacing) {
    pacer_.emplace(PacerOptions{.max_depth = static_cast<unsigned>(event.a),
                                .batch = event.b,
                                .slots = static_cast<unsigned>(event.c),
                                .objects = event.c >> 32 != 0});
    new_depth_.reset();
  }
  if (!pacer_) return;
  switch (event.kind) {
    case EventKind::kSlotOpened:
      pacer_->on_slot_opened(event.time);
      break;
    case EventKind::kAsked:
      if ((event.c >> 8 & 1) != 0) {
        const bool in_time =
            pacer_->has_time(event.time, origin_of(event.c), event.b, {.left = event.c >> 16, .bytes = event.position});
        expect(event, "a fill", 1, in_time ? 1 : 0);
      }
      pacer_->on_asked(origin_of(event.c), event.b);
      break;
    case EventKind::kRouted:
      expect(event, "route", event.c & 0xff,
             static_cast<std::uint64_t>(pacer_->route(event.time, origin_of(event.c >> 8), event.b, event.c >> 16)));
      break;
    case EventKind::kPart:
      expect(event, "a part", event.c & 1, pacer_->part_pays(origin_of(event.c >> 8), event.a, event.b) ? 1 : 0);
      break;
    case EventKind::kReadStarted: {
      const ReadFields read = ReadFields::unpack(event.c);
      expect(event, "a read started", 1, pacer_->may_start(read.origin, read.in_flight) ? 1 : 0);
      break;
    }
    case EventKind::kReadDone: {
      const ReadFields read = ReadFields::unpack(event.position);
      const bool changed = pacer_->on_read_done(event.time, {.origin = read.origin,
                                                             .asked = read.asked,
                                                             .bytes = event.b,
                                                             .took = Duration(static_cast<std::int64_t>(event.c)),
                                                             .in_flight = read.in_flight});
      if (new_depth_) expect(event, "no change of depth", 0, *new_depth_);
      new_depth_ = changed ? std::optional<std::uint64_t>(pacer_->depth(read.origin)) : std::nullopt;
      break;
    }
    case EventKind::kDepth:
      expect(event, "depth", event.a, new_depth_.value_or(0));
      new_depth_.reset();
      break;
    default:
      break;
  }
}

// What position, a, b and c of an event of requests are called in a difference.
struct RequestFields {
  EventKind kind;
  const char* what;
  std::array<const char*, 4> names;
};

constexpr RequestFields kRequestFields[] = {
    {EventKind::kWanted, "a range", {"a tag", "an object", "an offset", "a length"}},
    {EventKind::kGrouped, "a request", {"a group", "running << 32 | ranges", "offset of a group", "length of a group"}},
    {EventKind::kHedged, "a second request", {"a group sent twice", "running", "silence", "delay of a second request"}},
    {EventKind::kRequestDone, "a request's end", {"delay of second requests", "bytes", "silence", "window"}},
    {EventKind::kStopped, "a stopped twin", {"delay of second requests", "a", "silence", "c"}},
    {EventKind::kThrottled, "a complaint", {"position", "a", "b", "window after a complaint"}},
    {EventKind::kPaused, "a failure", {"a group that failed", "doubts << 32 | attempts", "asked pause", "pause"}},
    {EventKind::kSentAgain, "a request sent again", {"a group sent again", "running", "b", "c"}},
    {EventKind::kCancelled, "the end of all", {"position", "ranges that waited", "groups in a pause", "c"}},
};

std::array<std::uint64_t, 4> numbers(const Event& event) {
  return {event.position, event.a, event.b, event.c};
}

unsigned low_half(std::uint64_t number) {
  return static_cast<unsigned>(number);
}

unsigned high_half(std::uint64_t number) {
  return static_cast<unsigned>(number >> 32);
}

Duration nanoseconds(std::uint64_t number) {
  return Duration(static_cast<std::int64_t>(number));
}

class RequestReplay {
 public:
  void take(const Event& event);
  const ReplayResult& result() const { return comparison_.result(); }
  bool is_equal() const { return comparison_.is_equal(); }

 private:
  void begin(const Event& retry_rule);
  void tell(const Event& event);
  void compare(const Event& event, const RequestFields& fields);

  std::optional<Event> begun_;  // kRequests
  std::optional<RequestPolicy> policy_;
  std::optional<Event> made_;  // by the policy
  Comparison comparison_;
};

void RequestReplay::take(const Event& event) {
  if (event.kind == EventKind::kRequests) begun_ = event;
  if (event.kind == EventKind::kRetryRule && begun_) begin(event);
  const auto* const fields = std::find_if(std::begin(kRequestFields), std::end(kRequestFields),
                                          [&](const RequestFields& known) { return known.kind == event.kind; });
  if (!policy_ || fields == std::end(kRequestFields)) return;
  made_.reset();
  tell(event);
  compare(event, *fields);
}

void RequestReplay::begin(const Event& retry_rule) {
  const RequestOptions options = recorded_options(*begun_, retry_rule);
  policy_.emplace(retry_rule.time, options, [this](const Event& made) { made_ = made; });
}

void RequestReplay::tell(const Event& event) {
  switch (event.kind) {
    case EventKind::kWanted:
      return policy_->want(event.time,
                           {.tag = event.position, .object = event.a, .offset = event.b, .length = event.c});
    case EventKind::kGrouped:
      return void(policy_->next_group(event.time, high_half(event.a)));
    case EventKind::kHedged:
      return void(policy_->hedge(event.time, event.position, nanoseconds(event.b), low_half(event.a)));
    case EventKind::kRequestDone:
      return policy_->on_done(event.time,
                              {.bytes = event.a, .silence = nanoseconds(event.b), .limited = high_half(event.c) != 0});
    case EventKind::kStopped:
      return policy_->on_stopped(event.time, nanoseconds(event.b));
    case EventKind::kThrottled:
      return policy_->on_throttled(event.time);
    case EventKind::kPaused:
      return void(policy_->retry(event.time, {.group = event.position,
                                              .attempts = low_half(event.a),
                                              .doubts = high_half(event.a),
                                              .asked = nanoseconds(event.b)}));
    case EventKind::kSentAgain:
      return void(policy_->next_retry(event.time, low_half(event.a)));
    default:
      return policy_->cancel(event.time);
  }
}

void RequestReplay::compare(const Event& event, const RequestFields& fields) {
  if (!made_ || made_->kind != event.kind) {
    return comparison_.differ(event, fmt::format("{}: the run had one, the replay none", fields.what));
  }
  for (std::size_t i = 0; i < fields.names.size(); ++i) {
    comparison_.expect(event, fields.names[i], numbers(event)[i], numbers(*made_)[i]);
  }
}

// A fill is nobody's use.
bool is_use(const Event& event) {
  const bool is_fill = event.kind == EventKind::kAsked && (event.c >> 8 & 1) != 0;
  return (event.kind == EventKind::kHit || event.kind == EventKind::kAsked || event.kind == EventKind::kJoined) &&
         !is_fill;
}

bool is_eviction(const Event& event) {
  return event.kind == EventKind::kEvicted || event.kind == EventKind::kSpared || event.kind == EventKind::kBypassed;
}

// Answers a policy as the arena did when the record was written, and compares what it asks for. What was decided for a
// use stands before it.
class RecordedRoom : private Room {
 public:
  explicit RecordedRoom(std::vector<Event> events) : events_(std::move(events)) {}

  void replay(EvictionPolicy& policy, std::uint64_t positions);
  const ReplayResult& result() const { return comparison_.result(); }

 private:
  bool take(SampleId) override { return !is_eviction(events_[next_]); }
  bool evict(SampleId id) override;
  void admit(EvictionPolicy& policy, std::size_t use);

  std::vector<Event> events_;  // ends with a use
  std::size_t next_ = 0;
  Comparison comparison_;
};

bool RecordedRoom::evict(SampleId id) {
  const Event& event = events_[next_];
  if (!is_eviction(event) || event.kind == EventKind::kBypassed) {
    comparison_.differ(event, fmt::format("a victim: the run had none, the replay {}", id));
    return false;
  }
  comparison_.expect(event, "a victim", event.a, id);
  ++next_;
  return event.kind == EventKind::kEvicted;
}

void RecordedRoom::admit(EvictionPolicy& policy, std::size_t use) {
  const bool admitted = policy.admit(events_[use].a, *this);
  const Event& event = events_[next_];
  comparison_.expect(event, "a home", event.kind == EventKind::kBypassed ? 0 : 1, admitted ? 1 : 0);
  if (event.kind == EventKind::kBypassed) ++next_;
}

void RecordedRoom::replay(EvictionPolicy& policy, std::uint64_t positions) {
  while (next_ < events_.size() && comparison_.is_equal()) {
    std::size_t use = next_;
    while (!is_use(events_[use])) ++use;
    const Event& event = events_[use];
    policy.use(event.a, event.epoch * positions + event.position);
    if (event.kind == EventKind::kAsked) admit(policy, use);
    if (next_ != use)
      comparison_.differ(event, fmt::format("the run evicted {}, the replay did not", events_[next_].a));
    next_ = use + 1;
  }
}

}  // namespace

std::uint64_t ReadFields::pack() const {
  return std::uint64_t{fill} << kFillShift | static_cast<std::uint64_t>(asked) << kAskedShift |
         static_cast<std::uint64_t>(origin) << kOriginShift | in_flight;
}

ReadFields ReadFields::unpack(std::uint64_t packed) {
  return {.origin = origin_of(packed >> kOriginShift),
          .asked = origin_of(packed >> kAskedShift),
          .fill = (packed >> kFillShift & 1) != 0,
          .in_flight = static_cast<unsigned>(packed)};
}

ReplayResult replay_pacing(std::span<const Event> events) {
  PacingReplay replay;
  for (const Event& event : events) replay.take(event);
  return replay.result();
}

ReplayResult replay_requests(std::span<const Event> events) {
  RequestReplay replay;
  for (const Event& event : events) {
    if (replay.is_equal()) replay.take(event);
  }
  return replay.result();
}

ReplayResult replay_eviction(std::span<const Event> events, EvictionPolicy& policy, std::uint64_t positions) {
  std::vector<Event> told;
  for (const Event& event : events) {
    if (event.kind == EventKind::kSeek) break;  // what a jump breaks off is not recorded
    if (is_use(event) || is_eviction(event)) told.push_back(event);
  }
  while (!told.empty() && !is_use(told.back())) told.pop_back();
  RecordedRoom room(std::move(told));
  room.replay(policy, positions);
  return room.result();
}

}  // namespace foreload
