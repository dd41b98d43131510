#include "probe/stop_watch.h"

#include <chrono>
#include <thread>

namespace foreload {

Result<std::unique_ptr<StopWatch>> StopWatch::start(Loader& loader, const std::function<bool()>& stop) {
  std::unique_ptr<StopWatch> watch(new StopWatch);
  if (!stop) return watch;
  FORELOAD_ASSIGN(Thread thread,
                  Thread::start("fl-stop", [self = watch.get(), &loader, &stop] { self->watch(loader, stop); }));
  watch->thread_.emplace(std::move(thread));
  return watch;
}

// Again and again: an interrupt that came before next() was called would be over by then.
void StopWatch::watch(Loader& loader, const std::function<bool()>& stop) const {
  while (!done_) {
    if (stop()) loader.interrupt();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace foreload
