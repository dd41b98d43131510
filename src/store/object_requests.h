// ObjectRequests: the work of ObjectReader's thread: carries out what RequestPolicy decides. One thread uses it, except
// wake().
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "policy/request_policy.h"
#include "store/http_multi.h"
#include "store/object_attempt.h"
#include "store/object_reader.h"

namespace foreload {

class ObjectRequests {
 public:
  ObjectRequests(const ObjectReaderOptions& options, ObjectCounters& counters, std::unique_ptr<HttpMulti> multi);
  ~ObjectRequests();  // REQUIRES: cancel() was called, or nothing was added

  void add(const ObjectJob& job, Time now);
  // Starts what may start and moves bytes; appends the results of what has ended. Waits until something happens,
  // `deadline` or wake().
  void turn(std::vector<ObjectResult>& results, Time deadline);
  // Ends all jobs as failed.
  void cancel(std::vector<ObjectResult>& results);
  void wake() { multi_->wake(); }  // any thread

 private:
  unsigned running() const { return static_cast<unsigned>(running_.size()); }
  void start_groups(Time now);
  void start_hedges(Time now);
  ObjectGroup& form_group(const std::vector<WantedRange>& ranges);
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
  std::unique_ptr<HttpMulti> multi_;
  RequestPolicy policy_;
  Duration hedge_delay_ = Duration::max();
  bool limited_ = false;                               // jobs waited for a request when this thread did
  std::unordered_map<std::uint64_t, ObjectJob> jobs_;  // without a group, by tag
  std::unordered_map<std::uint64_t, std::unique_ptr<ObjectGroup>> groups_;  // by name
  std::vector<std::unique_ptr<ObjectAttempt>> running_;                     // at most the window
  std::vector<std::unique_ptr<ObjectAttempt>> idle_;                        // their handles are used again
  std::vector<HttpEnded> ended_;
};

}  // namespace foreload
