// Mutex, MutexLock and CondVar with clang's thread-safety annotations. Locks are leaves: nothing
// blocks and no callback runs under one. Lambdas escape the analysis, so wait in a loop:
//   while (!ready_) ready_changed_.wait(mutex_);
#pragma once

#include <condition_variable>
#include <mutex>

#include "foreload/types.h"

#if defined(__clang__)
#define FORELOAD_ANNOTATE_(x) __attribute__((x))
#else
#define FORELOAD_ANNOTATE_(x)
#endif
#define FORELOAD_CAPABILITY(x) FORELOAD_ANNOTATE_(capability(x))
#define FORELOAD_SCOPED_CAPABILITY FORELOAD_ANNOTATE_(scoped_lockable)
#define FORELOAD_GUARDED_BY(x) FORELOAD_ANNOTATE_(guarded_by(x))
#define FORELOAD_REQUIRES(...) FORELOAD_ANNOTATE_(requires_capability(__VA_ARGS__))
#define FORELOAD_EXCLUDES(...) FORELOAD_ANNOTATE_(locks_excluded(__VA_ARGS__))
#define FORELOAD_ACQUIRE(...) FORELOAD_ANNOTATE_(acquire_capability(__VA_ARGS__))
#define FORELOAD_RELEASE(...) FORELOAD_ANNOTATE_(release_capability(__VA_ARGS__))
#define FORELOAD_NO_ANALYSIS FORELOAD_ANNOTATE_(no_thread_safety_analysis)

namespace foreload {

class FORELOAD_CAPABILITY("mutex") Mutex {
 public:
  void lock() FORELOAD_ACQUIRE() { mutex_.lock(); }
  void unlock() FORELOAD_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class FORELOAD_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) FORELOAD_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() FORELOAD_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void wait(Mutex& mutex) FORELOAD_REQUIRES(mutex) FORELOAD_NO_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns at `deadline` (steady clock) at the latest.
  void wait_until(Mutex& mutex, Time deadline) FORELOAD_REQUIRES(mutex) FORELOAD_NO_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_until(lock, std::chrono::steady_clock::time_point(deadline));
    lock.release();
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace foreload
