// The policies of requests, put together, and what their events say (docs/event-record.md). Every number that a
// decision depends on is in an event: of the call itself, or of an earlier one.
#include "policy/request_policy.h"

#include <algorithm>

#include "base/random.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPeriod = 100ms;
constexpr double kWorthwhile = 1.05;
constexpr unsigned kEnoughRequests = 4;  // under way: then ranges that follow one another are waited for
constexpr unsigned kDoubts = 4;          // then it is no chance

std::uint64_t number(Duration duration) {
  return static_cast<std::uint64_t>(duration.count());
}

Duration duration_of(std::uint64_t number) {
  return Duration(static_cast<std::int64_t>(number));
}

std::uint64_t pair(std::uint64_t high, std::uint64_t low) {
  return high << 32 | low;
}

}  // namespace

RequestPolicy::RequestPolicy(Time now, const RequestOptions& options, Record record)
    : options_(options),
      record_(std::move(record)),
      waiting_(options.coalesce),
      window_(options.window.most, {.first = options.window.first, .period = kPeriod, .worthwhile = kWorthwhile}) {
  const auto& [coalesce, window, retry, jitter] = options_;
  tell({.time = now,
        .kind = EventKind::kRequests,
        .position = jitter,
        .a = pair(window.first, window.most),
        .b = coalesce.longest,
        .c = pair(coalesce.small_gap, coalesce.large_gap)});
  tell({.time = now,
        .kind = EventKind::kRetryRule,
        .position = retry.attempts,
        .a = number(retry.first_pause),
        .b = number(retry.longest_pause),
        .c = number(retry.longest_asked)});
}

RequestOptions recorded_options(const Event& requests, const Event& retry_rule) {
  constexpr std::uint64_t kLow = 0xffffffff;
  return {.coalesce = {.longest = requests.b, .small_gap = requests.c >> 32, .large_gap = requests.c & kLow},
          .window = {.first = static_cast<unsigned>(requests.a >> 32), .most = static_cast<unsigned>(requests.a)},
          .retry = {.attempts = static_cast<unsigned>(retry_rule.position),
                    .first_pause = duration_of(retry_rule.a),
                    .longest_pause = duration_of(retry_rule.b),
                    .longest_asked = duration_of(retry_rule.c)},
          .jitter = requests.position};
}

void RequestPolicy::tell(const Event& event) const {
  if (record_) record_(event);
}

Time RequestPolicy::next_retry_at() const {
  return retries_.empty() ? Time::max() : retries_.begin()->first;
}

Duration RequestPolicy::hedge_delay(Time now) const {
  return is_throttled(now) ? Duration::max() : hedging_.delay();
}

void RequestPolicy::want(Time now, const WantedRange& range) {
  waiting_.add(range);
  tell({.time = now,
        .kind = EventKind::kWanted,
        .position = range.tag,
        .a = range.object,
        .b = range.offset,
        .c = range.length});
}

// Waiting for ranges that follow one another ends: every request that is under way ends, and starts the others.
std::vector<WantedRange> RequestPolicy::next_group(Time now, unsigned running) {
  if (!has_room(running) || waiting_.is_empty()) return {};
  std::vector<WantedRange> ranges = waiting_.take(running >= kEnoughRequests);
  Event event{.time = now, .kind = EventKind::kGrouped, .a = pair(running, ranges.size())};
  if (!ranges.empty()) {
    event.position = ranges.front().tag;
    event.b = ranges.front().offset;
    event.c = ranges.back().offset + ranges.back().length - event.b;
  }
  tell(event);
  return ranges;
}

std::optional<std::uint64_t> RequestPolicy::next_retry(Time now, unsigned running) {
  if (!has_room(running) || next_retry_at() > now) return std::nullopt;
  const std::uint64_t group = retries_.begin()->second;
  retries_.erase(retries_.begin());
  tell({.time = now, .kind = EventKind::kSentAgain, .position = group, .a = running});
  return group;
}

bool RequestPolicy::hedge(Time now, std::uint64_t group, Duration silent, unsigned running) {
  const Duration delay = hedge_delay(now);
  if (!has_room(running) || delay == Duration::max() || silent < delay) return false;
  hedging_.on_hedged();
  tell({.time = now,
        .kind = EventKind::kHedged,
        .position = group,
        .a = running,
        .b = number(silent),
        .c = number(delay)});
  return true;
}

bool RequestPolicy::retry(Time now, const RequestFailure& failure) {
  std::optional<Duration> pause;
  if (failure.doubts < kDoubts) {
    pause = pause_after(options_.retry, failure.attempts, failure.asked, options_.jitter ^ mix64(failure.group));
  }
  if (pause) retries_.emplace(now + *pause, failure.group);
  tell({.time = now,
        .kind = EventKind::kPaused,
        .position = failure.group,
        .a = pair(failure.doubts, failure.attempts),
        .b = number(failure.asked),
        .c = number(pause.value_or(Duration::max()))});
  return pause.has_value();
}

void RequestPolicy::on_done(Time now, const RequestEnd& end) {
  window_.on_done(now, end.bytes, end.limited);
  hedging_.on_done(end.silence);
  if (!record_) return;
  tell({.time = now,
        .kind = EventKind::kRequestDone,
        .position = number(hedging_.delay()),
        .a = end.bytes,
        .b = number(end.silence),
        .c = pair(end.limited, window())});
}

void RequestPolicy::on_stopped(Time now, Duration silence) {
  hedging_.on_done(silence);
  if (!record_) return;
  tell({.time = now, .kind = EventKind::kStopped, .position = number(hedging_.delay()), .b = number(silence)});
}

void RequestPolicy::on_throttled(Time now) {
  window_.on_throttled(now);
  tell({.time = now, .kind = EventKind::kThrottled, .c = window()});
}

void RequestPolicy::cancel(Time now) {
  if (waiting_.is_empty() && retries_.empty()) return;
  tell({.time = now, .kind = EventKind::kCancelled, .a = waiting_.size(), .b = retries_.size()});
  waiting_.clear();
  retries_.clear();
}

}  // namespace foreload
