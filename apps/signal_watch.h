// SignalWatch: interrupts a loader when a signal comes, so that a wait for slow storage ends too.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/thread.h"
#include "foreload/loader.h"

namespace foreload {

class SignalWatch {
 public:
  // `loader` must live longer. kNoMemory: the system allows no more threads.
  static Result<std::unique_ptr<SignalWatch>> start(Loader& loader);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  SignalWatch() = default;
  void watch(Loader& loader) const;

  std::atomic<bool> done_{false};
  std::optional<Thread> thread_;
};

}  // namespace foreload
