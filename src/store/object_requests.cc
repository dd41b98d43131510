// A job waits in the coalescer until the window has room; then it and its neighbours become a group, which lives until
// its bytes are there or it has failed for good:
//
//   waiting ──► group: request ──► complete ──► results of all its jobs
//                  ▲   │   └ too long silent: a twin; the first of both that is complete stops the other
//                  └ pause ◄── failed, and may pass
//
// Both twins write the same checked bytes into the same spans, on this one thread; so it does not matter who is faster.
#include "store/object_requests.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"

namespace foreload {
namespace {

constexpr unsigned kDoubts = 4;  // then it is no chance
constexpr std::size_t kEnoughRequests = 4;

Error describe(const ObjectGroup& group, const Judgement& judgement) {
  const std::string attempts = counted(group.attempts, "attempt");
  if (judgement.refusal) {
    return {judgement.refusal->code, fmt::format("{}, after {}", judgement.refusal->message, attempts)};
  }
  const ObjectJob& job = group.jobs.front();
  return {judgement.code, fmt::format("{}, bytes {}-{}: after {}: {}", job.store->display(job.key), group.offset,
                                      group.offset + group.length - 1, attempts, judgement.reason)};
}

}  // namespace

ObjectRequests::ObjectRequests(const ObjectReaderOptions& options, ObjectCounters& counters,
                               std::unique_ptr<HttpMulti> multi)
    : options_(options),
      counters_(counters),
      jitter_(mix64(static_cast<std::uint64_t>(now().count()) ^ static_cast<std::uint64_t>(getpid()) << 40)),
      multi_(std::move(multi)),
      waiting_(options.coalesce),
      window_(options.window) {}

ObjectRequests::~ObjectRequests() {
  FORELOAD_CHECK(running_.empty(), "requests were cancelled");
}

void ObjectRequests::add(const ObjectJob& job) {
  FORELOAD_CHECK(!job.into.empty(), "a range has bytes");
  jobs_.emplace(job.tag, job);
  waiting_.add({.tag = job.tag, .object = job.object, .offset = job.offset, .length = job.into.size()});
}

void ObjectRequests::turn(std::vector<ObjectResult>& results, Time deadline) {
  const Time begun = now();
  hedge_delay_ = window_.was_throttled(begun) ? Duration::max() : hedging_.delay();
  if (window_.was_throttled(begun)) deadline = std::min(deadline, window_.calm_again());
  start_groups(begun);
  start_hedges(now());
  ended_.clear();
  multi_->wait(ended_, next_event(deadline));
  for (const HttpEnded& ended : ended_) on_end(ended, results);
}

// Groups whose pause is over are older than anything that waits.
void ObjectRequests::start_groups(Time now) {
  while (has_room() && !retries_.empty() && retries_.begin()->first <= now) {
    ObjectGroup* group = retries_.begin()->second;
    retries_.erase(retries_.begin());
    ++counters_.retries;
    send(*group, false, now);
  }
  while (!waiting_.is_empty()) {
    if (!has_room()) window_.on_limited(now);
    if (!has_room()) return;
    ObjectGroup* const group = next_group();
    if (group == nullptr) return;
    send(*group, false, now);
  }
}

void ObjectRequests::start_hedges(Time now) {
  if (hedge_delay_ == Duration::max()) return;
  for (std::size_t i = 0; i < running_.size() && has_room(); ++i) {
    ObjectGroup& group = running_[i]->group();
    if (group.is_hedged || now - running_[i]->heard() < hedge_delay_) continue;
    group.is_hedged = true;
    hedging_.on_hedged();
    ++counters_.hedges;
    send(group, true, now);
    hedge_delay_ = hedging_.delay();
    if (hedge_delay_ == Duration::max()) return;
  }
}

// While enough is under way, ranges that follow one another are waited for: every request ends, and starts the others.
ObjectGroup* ObjectRequests::next_group() {
  const std::vector<WantedRange> ranges = waiting_.take(running_.size() >= kEnoughRequests);
  if (ranges.empty()) return nullptr;
  auto group = std::make_unique<ObjectGroup>();
  for (const WantedRange& range : ranges) {
    const auto job = jobs_.find(range.tag);
    group->jobs.push_back(job->second);
    jobs_.erase(job);
  }
  group->offset = group->jobs.front().offset;
  group->length = group->jobs.back().offset + group->jobs.back().into.size() - group->offset;
  ObjectGroup* const added = group.get();
  groups_.emplace(added, std::move(group));
  return added;
}

void ObjectRequests::send(ObjectGroup& group, bool is_hedge, Time now) {
  if (idle_.empty()) idle_.push_back(std::make_unique<ObjectAttempt>(options_.http));
  auto attempt = std::move(idle_.back());
  idle_.pop_back();
  attempt->begin(group, is_hedge, now);
  if (!is_hedge) {
    ++group.attempts;
    group.is_hedged = false;
  }
  ++group.running;
  ++counters_.requests;
  multi_->start(attempt->transfer());
  running_.push_back(std::move(attempt));
}

Time ObjectRequests::next_event(Time deadline) const {
  if (!has_room()) return deadline;
  if (!retries_.empty()) deadline = std::min(deadline, retries_.begin()->first);
  if (hedge_delay_ == Duration::max()) return deadline;
  for (const auto& attempt : running_) {
    if (!attempt->group().is_hedged) deadline = std::min(deadline, attempt->heard() + hedge_delay_);
  }
  return deadline;
}

void ObjectRequests::on_end(const HttpEnded& ended, std::vector<ObjectResult>& results) {
  auto attempt = remove(*ended.transfer);
  if (!attempt) return;  // its twin ended in the same turn and stopped it
  const Judgement judgement = attempt->judge(ended.end);
  ObjectGroup& group = attempt->group();
  counters_.bytes += attempt->received();
  if (judgement.verdict == Verdict::kComplete) {
    window_.on_done(now(), attempt->received());
    hedging_.on_done(attempt->silence());
  }
  if (judgement.is_throttled) {
    ++counters_.throttled;
    window_.on_throttled(now());
  }
  set_aside(std::move(attempt));
  if (judgement.verdict == Verdict::kComplete) {
    complete(group, results);
  } else if (group.running == 0) {
    retry_or_fail(group, judgement, ended.end.retry_after, results);
  }
}

void ObjectRequests::complete(ObjectGroup& group, std::vector<ObjectResult>& results) {
  stop_twin(group);
  report(group, {.outcome = ReadOutcome::kDone, .attempts = group.attempts}, results);
}

void ObjectRequests::retry_or_fail(ObjectGroup& group, const Judgement& judgement, Duration asked,
                                   std::vector<ObjectResult>& results) {
  if (judgement.verdict == Verdict::kDoubtful) ++group.doubts;
  if (judgement.verdict != Verdict::kFinal && group.doubts < kDoubts) {
    const std::uint64_t key = jitter_ ^ mix64(group.jobs.front().tag);
    if (const auto pause = pause_after(options_.http.retry, group.attempts, asked, key)) {
      retries_.emplace(now() + *pause, &group);
      return;
    }
  }
  report(group,
         {.outcome = judgement.is_changed ? ReadOutcome::kChanged : ReadOutcome::kFailed,
          .found = judgement.found,
          .error = describe(group, judgement),
          .attempts = group.attempts},
         results);
}

void ObjectRequests::report(ObjectGroup& group, const ObjectResult& result, std::vector<ObjectResult>& results) {
  for (const ObjectJob& job : group.jobs) {
    results.push_back(result);
    results.back().tag = job.tag;
  }
  groups_.erase(&group);
}

void ObjectRequests::cancel(std::vector<ObjectResult>& results) {
  for (auto& attempt : running_) {
    multi_->stop(attempt->transfer());
    set_aside(std::move(attempt));
  }
  running_.clear();
  retries_.clear();
  while (!waiting_.is_empty()) next_group();
  while (!groups_.empty()) {
    ObjectGroup& group = *groups_.begin()->first;
    report(group,
           {.outcome = ReadOutcome::kFailed, .error = {Code::kCancelled, "cancelled"}, .attempts = group.attempts},
           results);
  }
}

// The attempt that uses `transfer`, out of those under way; null: it is not among them.
std::unique_ptr<ObjectAttempt> ObjectRequests::remove(const HttpTransfer& transfer) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const auto& attempt) { return &attempt->transfer() == &transfer; });
  if (found == running_.end()) return nullptr;
  auto attempt = std::move(*found);
  *found = std::move(running_.back());
  running_.pop_back();
  --attempt->group().running;
  return attempt;
}

void ObjectRequests::stop_twin(const ObjectGroup& group) {
  const auto twin =
      std::find_if(running_.begin(), running_.end(), [&](const auto& attempt) { return &attempt->group() == &group; });
  if (twin == running_.end()) return;
  multi_->stop((*twin)->transfer());
  counters_.bytes += (*twin)->received();
  hedging_.on_done(std::max((*twin)->silence(), now() - (*twin)->heard()));  // at least
  set_aside(remove((*twin)->transfer()));
}

void ObjectRequests::set_aside(std::unique_ptr<ObjectAttempt> attempt) {
  idle_.push_back(std::move(attempt));
}

}  // namespace foreload
