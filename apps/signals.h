// SIGINT, SIGTERM and SIGHUP as a flag that commands look at between pieces of work. A second one ends the
// process at once.
#pragma once

namespace foreload {

void catch_signals();
int caught_signal();  // 0, or the one that came; any thread

// While one lives, the first signal ends the process at once, too: for work that can not be asked to stop
// and leaves nothing half done.
class EndAtOnce {
 public:
  EndAtOnce();
  ~EndAtOnce();
  EndAtOnce(const EndAtOnce&) = delete;
  EndAtOnce& operator=(const EndAtOnce&) = delete;
};

}  // namespace foreload
