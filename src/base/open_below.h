// The parts of opening below a root that files.cc and the read engines share, in terms of descriptors and errno.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <string_view>

#include "foreload/source.h"

namespace foreload {

// O_NONBLOCK: opening a pipe must not wait for its other end; it is refused after fstat.
inline constexpr int kOpenBelowFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
inline constexpr unsigned kResolveBelow = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;

bool is_plain_relative(std::string_view path);  // not empty, not absolute, no "..", no NUL

// openat(), repeated after EINTR: a descriptor, or -1 with errno.
int open_retrying(int directory, const char* path, int flags, mode_t mode = 0);
// A descriptor, or -errno. EXDEV and ELOOP mean that a link leads outside.
int open_below_raw(int root, const char* path, int flags);
int open_below_by_kernel(int root, const char* path, int flags);  // openat2; ENOSYS or EPERM where it is missing
int open_below_by_steps(int root, const char* path, int flags);   // its twin

FileStamp stamp_from(const struct stat& status);

}  // namespace foreload
