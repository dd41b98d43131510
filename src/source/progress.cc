#include "source/progress.h"

#include <new>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace foreload {

namespace {

constexpr Duration kReportInterval = std::chrono::milliseconds(100);

// Set once; waited for with a deadline.
class Flag {
 public:
  void set() {
    MutexLock lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  bool wait_until(Time deadline) {
    MutexLock lock(mutex_);
    while (!is_set_ && now() < deadline) changed_.wait_until(mutex_, deadline);
    return is_set_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool is_set_ FORELOAD_GUARDED_BY(mutex_) = false;
};

}  // namespace

void run_reporting(const ScanProgress& progress, const std::function<void(std::uint64_t, std::uint64_t)>& report,
                   const std::function<void()>& work) {
  if (!report) {
    work();
    return;
  }
  Flag finished;
  bool out_of_memory = false;  // read when the thread has ended
  {
    const auto scan = Thread::start("foreload-scan", [&] {
      try {
        work();
      } catch (const std::bad_alloc&) {
        out_of_memory = true;
      }
      finished.set();
    });
    if (!scan.ok()) {  // silent, but complete
      work();
      finished.set();
    }
    while (!finished.wait_until(now() + kReportInterval)) report(progress.done.load(), progress.total.load());
  }
  if (out_of_memory) throw std::bad_alloc();  // where the caller would have seen it without the thread
  report(progress.done.load(), progress.total.load());
}

}  // namespace foreload
