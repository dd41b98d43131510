#include "policy/replay.h"

#include <fmt/format.h>

#include <optional>

#include "policy/pacing.h"

namespace foreload {
namespace {

constexpr unsigned kOriginShift = 32;
constexpr unsigned kAskedShift = 40;
constexpr unsigned kFillShift = 48;

class Replayer {
 public:
  void take(const Event& event);
  const ReplayResult& result() const { return result_; }

 private:
  void expect(const Event& event, const char* what, std::uint64_t run, std::uint64_t replayed);

  std::optional<Pacer> pacer_;
  std::optional<std::uint64_t> new_depth_;  // that the next kDepth must have
  ReplayResult result_;
};

void Replayer::expect(const Event& event, const char* what, std::uint64_t run, std::uint64_t replayed) {
  ++result_.decisions;
  if (run == replayed) return;
  if (result_.different++ > 0) return;
  result_.first_difference = fmt::format("{} at {} ns: the run had {}, the replay {}", what,
                                         std::chrono::nanoseconds(event.time).count(), run, replayed);
}

void Replayer::take(const Event& event) {
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
        const bool in_time = pacer_->has_time(event.time, static_cast<Origin>(event.c & 0xff), event.b,
                                              {.left = event.c >> 16, .bytes = event.position});
        expect(event, "a fill", 1, in_time ? 1 : 0);
      }
      pacer_->on_asked(static_cast<Origin>(event.c & 0xff), event.b);
      break;
    case EventKind::kRouted:
      expect(event, "route", event.c & 0xff,
             static_cast<std::uint64_t>(pacer_->route(event.time, event.b, event.c >> 8)));
      break;
    case EventKind::kPart:
      expect(event, "a part", event.c, pacer_->part_pays(event.a, event.b) ? 1 : 0);
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

}  // namespace

std::uint64_t ReadFields::pack() const {
  return std::uint64_t{fill} << kFillShift | static_cast<std::uint64_t>(asked) << kAskedShift |
         static_cast<std::uint64_t>(origin) << kOriginShift | in_flight;
}

ReadFields ReadFields::unpack(std::uint64_t packed) {
  return {.origin = static_cast<Origin>(packed >> kOriginShift & 1),
          .asked = static_cast<Origin>(packed >> kAskedShift & 1),
          .fill = (packed >> kFillShift & 1) != 0,
          .in_flight = static_cast<unsigned>(packed)};
}

ReplayResult replay_pacing(std::span<const Event> events) {
  Replayer replayer;
  for (const Event& event : events) replayer.take(event);
  return replayer.result();
}

}  // namespace foreload
