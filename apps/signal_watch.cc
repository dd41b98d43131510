#include "signal_watch.h"

#include <chrono>
#include <thread>

#include "signals.h"

namespace foreload {

Result<std::unique_ptr<SignalWatch>> SignalWatch::start(Loader& loader) {
  std::unique_ptr<SignalWatch> watch(new SignalWatch);
  FORELOAD_ASSIGN(Thread thread, Thread::start("fl-signals", [self = watch.get(), &loader] { self->watch(loader); }));
  watch->thread_.emplace(std::move(thread));
  return watch;
}

SignalWatch::~SignalWatch() {
  done_ = true;
}

// Again and again: an interrupt that came before next() was called would be over by then.
void SignalWatch::watch(Loader& loader) const {
  while (!done_) {
    if (caught_signal() != 0) loader.interrupt();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace foreload
