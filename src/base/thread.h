// The one place that starts threads. A Thread has a name (as seen in `top -H`) and blocks all signals,
// so that they reach the application's own threads; it is joined when destroyed.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace foreload {

class Thread {
 public:
  Thread(const std::string& name, std::function<void()> body);
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) = delete;
  ~Thread();

  // Forgets the thread without joining it. For a forked child, where it does not exist.
  void abandon();

 private:
  std::thread thread_;
};

// Runs body(i) for i = 0 … count-1 on up to `threads` threads and waits for all.
void parallel_for(unsigned threads, std::uint64_t count, const std::function<void(std::uint64_t)>& body);

}  // namespace foreload
