// One waiter at a time: only the main thread is watched. The watcher looks every 50 ms; when nothing has waited for a
// second it sleeps until the next wait wakes it. Its state is never freed and belongs to one process: after a fork the
// child makes its own, since the parent's locks may be held by threads that the child does not have.
#include "watch.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

namespace foreload::python {
namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr int kIdleLooks = 20;

struct Watcher {
  pid_t process = ::getpid();
  std::mutex mutex;
  std::condition_variable woken;
  Loader* waiter = nullptr;  // guarded by mutex, as all below
  bool seen = false;         // the waiter was there at the last look
  bool asleep = false;
  int idle = 0;

  void look() {
    std::unique_lock lock(mutex);
    for (;;) {
      woken.wait_for(lock, kLook);
      idle = waiter == nullptr ? idle + 1 : 0;
      if (waiter != nullptr && seen) waiter->interrupt();
      seen = waiter != nullptr;
      if (idle < kIdleLooks) continue;
      asleep = true;
      while (waiter == nullptr) woken.wait(lock);
      asleep = false;
      idle = 0;
    }
  }
};

std::atomic<Watcher*> g_watcher{nullptr};

// Without a thread to spare, Ctrl-C waits for the batch: no reason to fail.
void start(Watcher* watcher) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread([watcher] { watcher->look(); }).detach();
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// REQUIRES: the main thread of the process, so nobody else makes one meanwhile.
Watcher& watcher() {
  Watcher* found = g_watcher.load();
  if (found != nullptr && found->process == ::getpid()) return *found;
  auto* const made = new Watcher;
  g_watcher = made;
  start(made);
  return *made;
}

}  // namespace

Watched::Watched(Loader& loader) {
  Watcher& watch = watcher();
  const std::lock_guard lock(watch.mutex);
  watch.waiter = &loader;
  watch.seen = false;
  if (watch.asleep) watch.woken.notify_one();
}

Watched::~Watched() {
  Watcher& watch = watcher();
  const std::lock_guard lock(watch.mutex);
  watch.waiter = nullptr;
}

}  // namespace foreload::python
