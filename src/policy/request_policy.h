// RequestPolicy: all that the object reader decides: which ranges the next request fetches together, how many requests
// are under way, which of them is sent twice, and when a failed one is sent again. A plain state machine: time comes in
// as an argument. Every call that tells it something or takes a decision makes one event, from which policy/replay can
// repeat it: the same calls give the same events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/event_record.h"
#include "foreload/types.h"
#include "policy/coalescing.h"
#include "policy/depth.h"
#include "policy/hedging.h"
#include "policy/retrying.h"

namespace foreload {

// How many requests may be under way.
struct RequestWindowOptions {
  unsigned first = 16;
  unsigned most = 128;
};

struct RequestOptions {
  CoalesceOptions coalesce{};
  RequestWindowOptions window{};
  RetryOptions retry{};
  std::uint64_t jitter = 0;  // differs from process to process
};

// A request whose bytes all came.
struct RequestEnd {
  Bytes bytes = 0;
  Duration silence{};    // its longest one: before the first byte, or between two parts
  bool limited = false;  // ranges waited while as many requests as allowed were under way
};

// One that failed, and may pass.
struct RequestFailure {
  std::uint64_t group = 0;
  unsigned attempts = 0;  // so far
  unsigned doubts = 0;    // of their answers: to something else than what was asked for
  Duration asked{};       // the pause that the server wants; 0: none
};

// A group is what one request fetches; its name is the tag of its first range, which no other one has meanwhile.
// `running` counts the requests under way.
class RequestPolicy {
 public:
  using Record = std::function<void(const Event&)>;

  // `record` receives the events; empty: nobody does.
  RequestPolicy(Time now, const RequestOptions& options, Record record);

  unsigned window() const { return window_.depth(); }
  bool has_room(unsigned running) const { return running < window(); }
  bool has_waiting() const { return !waiting_.is_empty(); }
  bool is_throttled(Time now) const { return window_.was_throttled(now); }
  Time calm_again() const { return window_.calm_again(); }  // REQUIRES: is_throttled()
  Time next_retry_at() const;                               // Time::max(): nothing is to be sent again
  // The silence after which a request is sent a second time. Duration::max(): none is.
  Duration hedge_delay(Time now) const;

  // Those that come first are needed first. REQUIRES: tags differ.
  void want(Time now, const WantedRange& range);
  // What the next request fetches, by offset. Empty: nothing waits, there is no room, or it may still grow.
  std::vector<WantedRange> next_group(Time now, unsigned running);
  // The group that is sent again now. Nothing: no pause is over, or there is no room.
  std::optional<std::uint64_t> next_retry(Time now, unsigned running);
  // Is a second request sent for a group that has been silent for so long?
  bool hedge(Time now, std::uint64_t group, Duration silent, unsigned running);
  // Will it be sent again? Then next_retry() says when.
  bool retry(Time now, const RequestFailure& failure);

  void on_done(Time now, const RequestEnd& end);
  // The twin of a complete one was stopped; it had been silent for at least so long.
  void on_stopped(Time now, Duration silence);
  void on_throttled(Time now);
  void cancel(Time now);  // nothing waits any more, and nothing is sent again

 private:
  void tell(const Event& event) const;

  RequestOptions options_;
  Record record_;
  Coalescer waiting_;
  DepthControl window_;
  Hedging hedging_;
  std::multimap<Time, std::uint64_t> retries_;  // groups, by the end of their pause
};

// What the two events that a policy begins with say. REQUIRES: kRequests and kRetryRule.
RequestOptions recorded_options(const Event& requests, const Event& retry_rule);

}  // namespace foreload
