#include "store/object_reader.h"

#include <utility>

#include "base/clock.h"
#include "store/object_requests.h"

namespace foreload {

ObjectReader::ObjectReader(std::unique_ptr<ObjectRequests> requests, std::function<void()> done)
    : done_(std::move(done)), requests_(std::move(requests)) {}

Result<std::unique_ptr<ObjectReader>> ObjectReader::start(const ObjectReaderOptions& options, ObjectCounters& counters,
                                                          std::function<void()> done) {
  FORELOAD_ASSIGN(auto multi, HttpMulti::open(options.window.most));
  auto requests = std::make_unique<ObjectRequests>(options, counters, std::move(multi));
  std::unique_ptr<ObjectReader> reader(new ObjectReader(std::move(requests), std::move(done)));
  FORELOAD_ASSIGN(Thread thread, Thread::start("foreload-http", [self = reader.get()] { self->run(); }));
  reader->thread_.emplace(std::move(thread));
  return reader;
}

ObjectReader::~ObjectReader() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  requests_->wake();
  thread_.reset();  // joins
}

void ObjectReader::submit(std::span<const ObjectJob> jobs) {
  {
    MutexLock lock(mutex_);
    submitted_.insert(submitted_.end(), jobs.begin(), jobs.end());
  }
  requests_->wake();
}

void ObjectReader::take(std::vector<ObjectResult>& results) {
  MutexLock lock(mutex_);
  results.insert(results.end(), std::make_move_iterator(ended_.begin()), std::make_move_iterator(ended_.end()));
  ended_.clear();
}

void ObjectReader::hurry(bool on) {
  {
    MutexLock lock(mutex_);
    hurry_ = on;
  }
  requests_->wake();
}

void ObjectReader::run() {
  std::vector<ObjectJob> jobs;
  std::vector<ObjectResult> ended;
  for (;;) {
    bool hurry = false;
    {
      MutexLock lock(mutex_);
      if (stopping_) break;
      jobs.swap(submitted_);
      hurry = hurry_;
    }
    for (const ObjectJob& job : jobs) requests_->add(job, now());
    jobs.clear();
    if (hurry) requests_->cancel(ended);
    requests_->turn(ended, ended.empty() ? kNever : Time{0});
    pass_on(ended);
  }
  requests_->cancel(ended);
}

void ObjectReader::pass_on(std::vector<ObjectResult>& ended) {
  if (ended.empty()) return;
  {
    MutexLock lock(mutex_);
    ended_.insert(ended_.end(), std::make_move_iterator(ended.begin()), std::make_move_iterator(ended.end()));
  }
  ended.clear();
  done_();
}

}  // namespace foreload
