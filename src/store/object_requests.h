// ObjectRequests: the work of ObjectReader's thread: forms requests of jobs, keeps as many under way as the window
// allows, sends slow ones twice and failed ones again. One thread uses it, except wake().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "policy/coalescing.h"
#include "policy/hedging.h"
#include "policy/request_window.h"
#include "store/http_multi.h"
#include "store/object_attempt.h"
#include "store/object_reader.h"

namespace foreload {

class ObjectRequests {
 public:
  ObjectRequests(const ObjectReaderOptions& options, ObjectCounters& counters, std::unique_ptr<HttpMulti> multi);
  ~ObjectRequests();  // REQUIRES: cancel() was called, or nothing was added

  void add(const ObjectJob& job);
  // Starts what may start and moves bytes; appends the results of what has ended. Waits until something happens,
  // `deadline` or wake().
  void turn(std::vector<ObjectResult>& results, Time deadline);
  // Ends all jobs as failed.
  void cancel(std::vector<ObjectResult>& results);
  void wake() { multi_->wake(); }  // any thread

 private:
  bool has_room() const { return running_.size() < window_.size(); }
  void start_groups(Time now);
  void start_hedges(Time now);
  ObjectGroup* next_group();  // null: it may still grow
  void send(ObjectGroup& group, bool is_hedge, Time now);
  Time next_event(Time deadline) const;
  void on_end(const HttpEnded& ended, std::vector<ObjectResult>& results);
  void complete(ObjectGroup& group, std::vector<ObjectResult>& results);
  void retry_or_fail(ObjectGroup& group, const Judgement& judgement, Duration asked,
                     std::vector<ObjectResult>& results);
  void report(ObjectGroup& group, const ObjectResult& result, std::vector<ObjectResult>& results);
  std::unique_ptr<ObjectAttempt> remove(const HttpTransfer& transfer);
  void stop_twin(const ObjectGroup& group);
  void set_aside(std::unique_ptr<ObjectAttempt> attempt);

  ObjectReaderOptions options_;
  ObjectCounters& counters_;
  std::uint64_t jitter_;  // the key of this process's pauses
  std::unique_ptr<HttpMulti> multi_;
  Coalescer waiting_;
  RequestWindow window_;
  Hedging hedging_;
  Duration hedge_delay_ = Duration::max();
  std::unordered_map<std::uint64_t, ObjectJob> jobs_;  // in waiting_, by tag
  std::unordered_map<ObjectGroup*, std::unique_ptr<ObjectGroup>> groups_;
  std::multimap<Time, ObjectGroup*> retries_;            // by the end of their pause
  std::vector<std::unique_ptr<ObjectAttempt>> running_;  // at most the window
  std::vector<std::unique_ptr<ObjectAttempt>> idle_;     // their handles are used again
  std::vector<HttpEnded> ended_;
};

}  // namespace foreload
