#include "base/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/machine.h"
#include "base/text.h"

namespace foreload {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr Bytes kPiece = 16_MiB;
constexpr Bytes kProcesses = 32_MiB;  // code and heap of those that have just started, and of this one

// A memory file is a file: beyond the limit of those, the kernel's answer would be a signal.
Status check_file_limit(Bytes bytes, const char* purpose) {
  rlimit limit{};
  FORELOAD_CHECK(::getrlimit(RLIMIT_FSIZE, &limit) == 0, "RLIMIT_FSIZE exists");
  if (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return {};
  return Error{Code::kNoMemory,
               fmt::format("{} of shared memory for {} can not be had: a file may have {} (ulimit -f); "
                           "raise that, or lower the memory budget",
                           format_bytes(bytes), purpose, format_bytes(limit.rlim_cur))};
}

// Before every piece, because other processes take theirs at the same time: a group that is over its limit is not told
// so, one of its processes is killed.
Status check_available(Bytes bytes, Bytes beside) {
  const Bytes available = available_memory();
  const Bytes kept = kProcesses + beside;
  if (available >= kept && bytes <= available - kept) return {};
  return Error{Code::kNoMemory,
               fmt::format("{} of shared memory can not be reserved: {} are available (machine, cgroup or ulimit), of "
                           "which {} are needed beside it; lower the memory budget",
                           format_bytes(bytes), format_bytes(available), format_bytes(kept))};
}

Status allocate(int file, Bytes offset, Bytes bytes) {
  int failed = 0;
  do {
    failed = ::fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (failed == EINTR);
  if (failed == 0) return {};
  return Error{Code::kNoMemory, fmt::format("{} of shared memory can not be reserved: {}; lower the memory budget",
                                            format_bytes(bytes), errno_error("", failed).message)};
}

}  // namespace

Result<SharedMemory> SharedMemory::create(Bytes bytes, const char* purpose) {
  FORELOAD_TRY(check_file_limit(bytes, purpose));
  Descriptor file(::memfd_create("foreload", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid())
    return errno_error(fmt::format("memory for {} can not be shared between processes", purpose), errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 || ::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return errno_error(fmt::format("{} of shared memory for {} can not be had", format_bytes(bytes), purpose), errno);
  }
  FORELOAD_ASSIGN(Region region, Region::map_file(file.get(), 0, bytes, purpose));
  return SharedMemory(std::move(file), std::move(region));
}

Result<SharedMemory> SharedMemory::adopt(Descriptor file, Bytes bytes, const char* purpose) {
  struct stat found {};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(file.get(), &found) != 0) {
    return Error{Code::kInvalid, fmt::format("what was handed over for {} is no sealed memory file", purpose)};
  }
  if (static_cast<Bytes>(found.st_size) != bytes) {
    return Error{Code::kInvalid, fmt::format("what was handed over for {} has {} bytes where {} are expected", purpose,
                                             found.st_size, bytes)};
  }
  FORELOAD_ASSIGN(Region region, Region::map_file(file.get(), 0, bytes, purpose));
  return SharedMemory(std::move(file), std::move(region));
}

Status SharedMemory::reserve(Bytes offset, Bytes bytes, Bytes beside) const {
  FORELOAD_TRY(check_available(bytes, beside));
  for (Bytes done = 0; done < bytes; done += kPiece) {
    const Bytes piece = std::min(kPiece, bytes - done);
    if (done > 0) FORELOAD_TRY(check_available(piece, beside));
    FORELOAD_TRY(allocate(file_.get(), offset + done, piece));
  }
  return {};
}

}  // namespace foreload
