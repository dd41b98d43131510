#include "base/record_lock.h"

#include <fcntl.h>

#include "base/check.h"

namespace foreload {
namespace {

struct flock byte_at(Bytes at, short type) {
  return {.l_type = type, .l_whence = SEEK_SET, .l_start = static_cast<off_t>(at), .l_len = 1, .l_pid = 0};
}

}  // namespace

bool lock_byte(int file, Bytes at) {
  struct flock wanted = byte_at(at, F_WRLCK);
  return ::fcntl(file, F_SETLK, &wanted) == 0;
}

void unlock_byte(int file, Bytes at) {
  struct flock wanted = byte_at(at, F_UNLCK);
  FORELOAD_CHECK(::fcntl(file, F_SETLK, &wanted) == 0, "giving up a lock needs only an open file");
}

bool is_byte_locked(int file, Bytes at) {
  struct flock found = byte_at(at, F_WRLCK);
  FORELOAD_CHECK(::fcntl(file, F_GETLK, &found) == 0, "asking for a lock needs only an open file");
  return found.l_type != F_UNLCK;
}

}  // namespace foreload
