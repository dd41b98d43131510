// The one place that starts threads. A Thread has a name (as seen in `top -H`) and blocks all signals
// but faults, so that they reach the application's own threads; it is joined when destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "foreload/result.h"

namespace foreload {

class Thread {
 public:
  // kNoMemory: the system allows no more threads.
  static Result<Thread> start(const std::string& name, std::function<void()> body);
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) = delete;
  ~Thread();

 private:
  explicit Thread(std::thread thread) : thread_(std::move(thread)) {}
  std::thread thread_;
};

// Lets threads of normal priority go first whenever they have something to do. For this thread, for good.
void yield_to_others();

// Runs body(i) for i = 0 … count-1 on up to `threads` threads, the caller's included, and waits for all.
void parallel_for(unsigned threads, std::uint64_t count, const std::function<void(std::uint64_t)>& body);

}  // namespace foreload
