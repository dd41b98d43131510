#include "signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "base/check.h"

namespace foreload {

namespace {

// A signal handler can reach nothing but globals.
std::atomic<int> caught{0};
std::atomic<bool> end_at_once{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_signal(int number) {
  if (caught.exchange(number) != 0 || end_at_once) _exit(128 + number);
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    FORELOAD_CHECK(sigaction(number, nullptr, &before) == 0, "the signal exists");
    if (before.sa_handler == SIG_IGN) continue;  // started by nohup or a shell's "&": stays ignored
    FORELOAD_CHECK(sigaction(number, &action, nullptr) == 0, "the signal exists");
  }
}

int caught_signal() {
  return caught.load();
}

EndAtOnce::EndAtOnce() {
  end_at_once = true;
  // One that came just before would otherwise be waited out.
  if (caught != 0) _exit(128 + caught);
}

EndAtOnce::~EndAtOnce() {
  end_at_once = false;
}

}  // namespace foreload
