// A job waits until the policy's window has room; then it and its neighbours become a group, which lives until its
// bytes are there or it has failed for good:
//
//   waiting ──► group: request ──► complete ──► results of all its jobs
//                  ▲   │   └ too long silent: a twin; the first of both that is complete stops the other
//                  └ pause ◄── failed, and may pass
//
// Both twins write the same checked bytes into the same spans, on this one thread; so it does not matter who is faster.
#include "store/object_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/jitter.h"
#include "base/text.h"

namespace foreload {
namespace {

RequestOptions request_options(const ObjectReaderOptions& options) {
  return {.coalesce = options.coalesce, .window = options.window, .retry = options.http.retry, .jitter = jitter_key()};
}

RequestPolicy::Record recorder(EventRecord* record) {
  if (record == nullptr) return {};
  return [record](const Event& event) { record->append(event); };
}

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
      multi_(std::move(multi)),
      policy_(now(), request_options(options), recorder(options.record)) {}

ObjectRequests::~ObjectRequests() {
  FORELOAD_CHECK(running_.empty(), "requests were cancelled");
}

void ObjectRequests::add(const ObjectJob& job, Time now) {
  FORELOAD_CHECK(!job.into.empty(), "a range has bytes");
  jobs_.emplace(job.tag, job);
  policy_.want(now, {.tag = job.tag, .object = job.object, .offset = job.offset, .length = job.into.size()});
}

void ObjectRequests::turn(std::vector<ObjectResult>& results, Time deadline) {
  const Time begun = now();
  start_groups(begun);
  start_hedges(begun);
  if (policy_.is_throttled(begun)) deadline = std::min(deadline, policy_.calm_again());
  ended_.clear();
  multi_->wait(ended_, next_event(deadline));
  for (const HttpEnded& ended : ended_) on_end(ended, results);
}

// Groups whose pause is over are older than anything that waits.
void ObjectRequests::start_groups(Time now) {
  while (const auto name = policy_.next_retry(now, running())) {
    ++counters_.retries;
    send(*groups_.at(*name), false, now);
  }
  for (;;) {
    const std::vector<WantedRange> ranges = policy_.next_group(now, running());
    if (ranges.empty()) break;
    send(form_group(ranges), false, now);
  }
  limited_ = policy_.has_waiting() && !policy_.has_room(running());
}

void ObjectRequests::start_hedges(Time now) {
  hedge_delay_ = policy_.hedge_delay(now);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    ObjectGroup& group = running_[i]->group();
    const Duration silent = now - running_[i]->heard();
    if (group.is_hedged || silent < hedge_delay_) continue;
    if (!policy_.hedge(now, group.name(), silent, running())) return;
    group.is_hedged = true;
    ++counters_.hedges;
    send(group, true, now);
    hedge_delay_ = policy_.hedge_delay(now);
  }
}

ObjectGroup& ObjectRequests::form_group(const std::vector<WantedRange>& ranges) {
  auto group = std::make_unique<ObjectGroup>();
  for (const WantedRange& range : ranges) {
    const auto job = jobs_.find(range.tag);
    group->jobs.push_back(job->second);
    jobs_.erase(job);
  }
  group->offset = group->jobs.front().offset;
  group->length = group->jobs.back().offset + group->jobs.back().into.size() - group->offset;
  ObjectGroup& formed = *group;
  groups_.emplace(formed.name(), std::move(group));
  return formed;
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
  if (!policy_.has_room(running())) return deadline;
  deadline = std::min(deadline, policy_.next_retry_at());
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
    policy_.on_done(now(), {.bytes = attempt->received(), .silence = attempt->silence(), .limited = limited_});
  }
  if (judgement.is_throttled) {
    ++counters_.throttled;
    policy_.on_throttled(now());
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
  const RequestFailure failure{
      .group = group.name(), .attempts = group.attempts, .doubts = group.doubts, .asked = asked};
  if (judgement.verdict != Verdict::kFinal && policy_.retry(now(), failure)) return;
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
  groups_.erase(group.name());
}

void ObjectRequests::cancel(std::vector<ObjectResult>& results) {
  for (auto& attempt : running_) {
    multi_->stop(attempt->transfer());
    set_aside(std::move(attempt));
  }
  running_.clear();
  policy_.cancel(now());
  const ObjectResult cancelled{.outcome = ReadOutcome::kFailed, .error = {Code::kCancelled, "cancelled"}};
  for (const auto& [tag, job] : jobs_) {
    results.push_back(cancelled);
    results.back().tag = tag;
  }
  jobs_.clear();
  while (!groups_.empty()) {
    ObjectGroup& group = *groups_.begin()->second;
    ObjectResult result = cancelled;
    result.attempts = group.attempts;
    report(group, result, results);
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
  const Time current = now();
  policy_.on_stopped(current, std::max((*twin)->silence(), current - (*twin)->heard()));
  set_aside(remove((*twin)->transfer()));
}

void ObjectRequests::set_aside(std::unique_ptr<ObjectAttempt> attempt) {
  idle_.push_back(std::move(attempt));
}

}  // namespace foreload
