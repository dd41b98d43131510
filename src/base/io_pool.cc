// The twin of io_ring.cc for kernels and containers without io_uring: up to kMostThreads threads take jobs from
// one queue and carry each through from open to close. The first is started at once, the others when there is work
// for them; where the system allows no more, those that exist do it all.
//
// Everything the threads touch is in Shared, on the heap: in a forked child, where the threads do not exist but
// may seem to hold the mutex and to wait on the conditions, it is leaked instead of destroyed.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <string>

#include "base/check.h"
#include "base/clock.h"
#include "base/io_engines.h"
#include "base/mutex.h"
#include "base/open_below.h"
#include "base/read_task.h"
#include "base/thread.h"

namespace foreload {

namespace {

constexpr unsigned kMostThreads = 32;

class PoolQueue {
 public:
  // Returns how many threads this many jobs could keep busy.
  std::size_t put(std::span<const ReadJob> jobs) FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    in_flight_ += jobs.size();
    queue_.insert(queue_.end(), jobs.begin(), jobs.end());
    for (std::size_t i = 0; i < jobs.size(); ++i) work_.notify_one();
    return in_flight_;
  }

  // False: the engine closes.
  bool take(ReadJob& job) FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (queue_.empty() && !closed_) work_.wait(mutex_);
    if (closed_) return false;
    job = queue_.front();
    queue_.pop_front();
    return true;
  }

  void finish(const ReadResult& result) FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    finished_.push_back(result);
    done_.notify_one();
  }

  void collect(std::vector<ReadResult>& results, Time deadline) FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (finished_.empty() && !woken_ && (deadline == kNever || now() < deadline)) {
      if (deadline == kNever) {
        done_.wait(mutex_);
      } else {
        done_.wait_until(mutex_, deadline);
      }
    }
    woken_ = false;
    in_flight_ -= finished_.size();
    results.insert(results.end(), finished_.begin(), finished_.end());
    finished_.clear();
  }

  void wake() FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    woken_ = true;
    done_.notify_one();
  }

  void close() FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    closed_ = true;
    work_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar work_;
  CondVar done_;
  std::deque<ReadJob> queue_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<ReadResult> finished_ FORELOAD_GUARDED_BY(mutex_);
  std::size_t in_flight_ FORELOAD_GUARDED_BY(mutex_) = 0;  // submitted and not yet collected
  bool woken_ FORELOAD_GUARDED_BY(mutex_) = false;
  bool closed_ FORELOAD_GUARDED_BY(mutex_) = false;
};

int open_file(const ReadTask& task) {
  const int flags = kOpenBelowFlags | (task.opens_direct() ? O_DIRECT : 0);
  return open_below_raw(task.job().root, task.job().path, flags);
}

int read_piece(const ReadTask::Piece& piece) {
  const ssize_t got = pread(piece.fd, piece.into, piece.length, static_cast<off_t>(piece.offset));
  return got < 0 ? -errno : static_cast<int>(got);
}

void work(PoolQueue& queue, const ReadEngineOptions& options) {
  ReadTask task(options);
  for (ReadJob job; queue.take(job);) {
    auto next = task.start(job);
    while (next != ReadTask::Next::kFinished) {
      next =
          next == ReadTask::Next::kOpen ? task.opened(open_file(task)) : task.read_returned(read_piece(task.piece()));
    }
    queue.finish(task.result());
  }
}

class PoolEngine : public ReadEngine {
 public:
  explicit PoolEngine(const ReadEngineOptions& options) : shared_(std::make_unique<Shared>()), owner_(getpid()) {
    shared_->options = options;
  }

  ~PoolEngine() override {
    if (getpid() != owner_) {
      static_cast<void>(shared_.release());
      return;
    }
    shared_->queue.close();
  }

  const char* name() const override { return "threads"; }
  unsigned max_depth() const override { return shared_->options.depth; }

  Status start_thread() {
    FORELOAD_ASSIGN(Thread thread, Thread::start("foreload-io-" + std::to_string(shared_->threads.size()),
                                                 [shared = shared_.get()] { work(shared->queue, shared->options); }));
    shared_->threads.push_back(std::move(thread));
    return {};
  }

  void submit(std::span<const ReadJob> jobs) override {
    const std::size_t in_flight = shared_->queue.put(jobs);
    FORELOAD_CHECK(in_flight <= max_depth(), "no more jobs than the depth are submitted");
    const std::size_t wanted = std::min<std::size_t>(in_flight, kMostThreads);
    while (shared_->threads.size() < wanted && start_thread().ok()) {
    }
  }

  void wait(std::vector<ReadResult>& results, Time deadline) override { shared_->queue.collect(results, deadline); }
  void wake() override { shared_->queue.wake(); }

 private:
  struct Shared {
    ReadEngineOptions options;
    PoolQueue queue;
    std::vector<Thread> threads;  // last: joined while the rest still exists
  };

  std::unique_ptr<Shared> shared_;
  const pid_t owner_;
};

}  // namespace

Result<std::unique_ptr<ReadEngine>> open_pool_engine(const ReadEngineOptions& options) {
  auto engine = std::make_unique<PoolEngine>(options);
  FORELOAD_TRY(engine->start_thread());
  return std::unique_ptr<ReadEngine>(std::move(engine));
}

}  // namespace foreload
