#include "base/read_engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/files.h"
#include "base/io_engines.h"

namespace foreload {

namespace {

constexpr unsigned kMostDepth = 4096;

// Seccomp and the kernel's switch answer EPERM or EACCES, kernels without or with an old io_uring ENOSYS or
// EOPNOTSUPP, a small RLIMIT_MEMLOCK before Linux 5.12 ENOMEM.
bool means_unavailable(int error_number) {
  constexpr std::array kErrors{EPERM, EACCES, ENOSYS, EOPNOTSUPP, ENOMEM};
  return std::find(kErrors.begin(), kErrors.end(), error_number) != kErrors.end();
}

}  // namespace

Result<std::unique_ptr<ReadEngine>> open_read_engine(const ReadEngineOptions& options) {
  if (!options.kind.empty() && options.kind != "uring" && options.kind != "threads") {
    return Error{Code::kInvalid,
                 fmt::format("unknown read engine \"{}\"; choose uring or threads, or leave it empty", options.kind)};
  }
  ReadEngineOptions checked = options;
  checked.depth = std::clamp(options.depth, 1u, kMostDepth);
  if (options.kind == "threads") return open_pool_engine(checked);
  RingOpening ring = open_ring_engine(checked);
  if (ring.engine != nullptr) return std::move(ring.engine);
  if (options.kind.empty() && means_unavailable(ring.error_number)) return open_pool_engine(checked);
  Error error = errno_error("cannot use io_uring", ring.error_number);
  error.message += "; the threads engine works everywhere";
  return error;
}

}  // namespace foreload
