// Pacer: what to fetch next, from where, how far ahead and how many at once. A plain state machine: it is told what
// happened and when, and answers; it reads no clock and touches no bytes. The same events give the same answers
// (policy/replay checks that for the record of a real run).
//
//   order    what open batches lack, then the stream in the order of need, then homes that stand empty
//   route    from the nearest tier, unless it would come too late and the other one much sooner
//   depth    per origin, as many reads as bring more bytes per second
//   fill     only what no read of the stream waits for, and the learner does not miss
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "foreload/types.h"
#include "policy/cost_model.h"
#include "policy/depth.h"
#include "policy/pace.h"

namespace foreload {

// Who wants bytes.
enum class FetchClass {
  kSubstitutes,  // batches that are open already and lost a sample
  kStream,       // what comes next
  kFill,         // what will have its home here and is needed later
};

struct PacerOptions {
  unsigned max_depth = 128;
  std::uint64_t batch = 1;  // samples per ring slot
  unsigned slots = 2;       // of the ring
  bool objects = false;     // the source is an object store, whose requests have a window of their own
};

// What must be read from an origin by the time at which the learner needs the batch that stands `left` behind the one
// that it uses.
struct Need {
  static constexpr std::uint64_t kNobody = 0xffff'ffff;  // takes batches: there is all the time

  std::uint64_t left = 0;
  Bytes bytes = 0;
};

// A read that ended.
struct ReadEnd {
  Origin origin = Origin::kSource;
  Origin asked = Origin::kSource;  // as in on_asked()
  Bytes bytes = 0;
  Duration took{};
  unsigned in_flight = 0;  // other reads at the origin while it was waited for
};

class Pacer {
 public:
  explicit Pacer(const PacerOptions& options);
  const PacerOptions& options() const { return options_; }

  // In which order wants are served; within each, in the order of need. What an open batch lacks is needed before
  // anything that is read ahead.
  static constexpr std::array<FetchClass, 3> order() {
    return {FetchClass::kSubstitutes, FetchClass::kStream, FetchClass::kFill};
  }

  // How many batches beyond the open ring slots bytes are fetched; they wait in transit.
  std::uint64_t lookahead_batches() const;
  // Where to read a sample that the source and a `nearer` one have. `batches_left`: until the consumer needs it.
  Origin route(Time now, Origin nearer, Bytes length, std::uint64_t batches_left) const;
  // Is it better to get only `part` of the `whole` bytes of a sample that is not kept? Of the source it costs a second
  // request, and of another host the time in which it is cut out there.
  bool part_pays(Origin origin, Bytes whole, Bytes part) const;
  // Could it be, of the source?
  bool parts_may_pay() const;
  // May another read start? `in_flight` counts those of the origin.
  bool may_start(Origin origin, unsigned in_flight) const { return in_flight < depth(origin); }
  // And one that nobody waits for? `waiting`: reads of the stream that have not started.
  bool may_fill(Origin origin, unsigned in_flight, std::size_t waiting) const {
    return waiting == 0 && may_start(origin, in_flight);
  }
  // Which of the coming batches suffers first from reads that nobody waits for? `lacking`: bytes that each of them
  // still needs from the origin, beginning with the learner's own; `filling`: what is on its way to homes.
  Need tightest(Time now, Origin origin, std::span<const Bytes> lacking, Bytes filling) const;
  // Does it come in time if so much more is read before it?
  bool has_time(Time now, Origin origin, Bytes length, const Need& need) const;

  unsigned depth(Origin origin) const {
    return options_.objects && origin == Origin::kSource ? options_.max_depth : control(origin).depth();
  }
  double bytes_per_second(Origin origin) const { return control(origin).bytes_per_second(); }
  const Pace& pace() const { return pace_; }  // of the learner

  void on_asked(Origin origin, Bytes bytes) { queued_[index(origin)] += bytes; }
  // Returns whether the origin's depth changed.
  bool on_read_done(Time now, const ReadEnd& read);
  void on_slot_opened(Time now);  // the consumer gave one back, or the run begins

 private:
  Duration spare(Time now, Origin origin, const Need& need) const;
  static std::size_t index(Origin origin) { return static_cast<std::size_t>(origin); }
  const DepthControl& control(Origin origin) const { return depths_[index(origin)]; }

  PacerOptions options_;
  std::array<DepthControl, kOrigins> depths_;
  std::array<OriginCost, kOrigins> costs_{};
  std::array<Bytes, kOrigins> queued_{};  // asked for and not yet here
  std::uint64_t opened_ = 0;
  Pace pace_;
};

}  // namespace foreload
