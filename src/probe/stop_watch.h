// StopWatch: interrupts a loader as soon as somebody wants to stop, so that a wait for slow storage ends, too.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "base/thread.h"
#include "foreload/loader.h"
#include "foreload/result.h"

namespace foreload {

class StopWatch {
 public:
  // Both must live longer. kNoMemory: the system allows no more threads.
  static Result<std::unique_ptr<StopWatch>> start(Loader& loader, const std::function<bool()>& stop);
  ~StopWatch() { done_ = true; }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  StopWatch() = default;
  void watch(Loader& loader, const std::function<bool()>& stop) const;

  std::atomic<bool> done_{false};
  std::optional<Thread> thread_;
};

}  // namespace foreload
