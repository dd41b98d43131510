// Watch: lets Ctrl-C through to a main thread that waits in Loader::next(). Python runs its signal handlers only when
// the main thread comes back from C++, so a wait that has lasted for a while is interrupted now and then; the caller
// looks for signals and waits on. A wait that is shorter than that costs two uncontended locks.
#pragma once

#include "foreload/loader.h"

namespace foreload::python {

// While it lives, `loader` is interrupted every 50 ms or so. The thread behind it is started once per process, also
// after a fork, and touches no Python object.
class Watched {
 public:
  explicit Watched(Loader& loader);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
};

}  // namespace foreload::python
