// Liveness through record locks on bytes of a shared file: held as long as the process lives, also while it is stopped,
// and free the moment it is dead, even as a zombie or with a forked child alive. The trap: closing any descriptor of
// that file in the process drops all its locks, so one descriptor is kept until the end.
#pragma once

#include "foreload/types.h"

namespace foreload {

// False: another process holds it.
bool lock_byte(int file, Bytes at);
void unlock_byte(int file, Bytes at);
// Whether another process holds it. What this process holds does not count.
bool is_byte_locked(int file, Bytes at);

}  // namespace foreload
