#include "base/region.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace foreload {

Result<Region> Region::map(Bytes bytes, const char* purpose) {
  return map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, bytes, purpose);
}

Result<Region> Region::map_file(int file, Bytes offset, Bytes bytes, const char* purpose) {
  return map(MAP_SHARED, file, offset, bytes, purpose);
}

Result<Region> Region::map_copy(int file, Bytes offset, Bytes bytes, const char* purpose) {
  FORELOAD_ASSIGN(Region copy, map(MAP_PRIVATE | MAP_NORESERVE, file, offset, bytes, purpose));
  // A process that locks its memory (mlockall) would have its own pages from the beginning.
  if (bytes > 0) copy.forget(0, bytes);
  return copy;
}

void Region::forget(Bytes offset, Bytes bytes) const {
  if (madvise(data_ + offset, bytes, MADV_DONTNEED) == 0) return;
  const bool forgotten = munlock(data_ + offset, bytes) == 0 && madvise(data_ + offset, bytes, MADV_DONTNEED) == 0;
  FORELOAD_CHECK(forgotten, "pages of a copy can be given up");
}

// A compiler may drop an operation that changes nothing, but not one that compares first.
void Region::make_own(Bytes offset, Bytes bytes) const {
  for (Bytes at = offset; at < offset + bytes; at += 4096) {
    const std::atomic_ref<unsigned char> first(*reinterpret_cast<unsigned char*>(data_ + at));
    unsigned char same = first.load();
    while (!first.compare_exchange_weak(same, same)) {
    }
  }
}

Result<Region> Region::map(int flags, int file, Bytes offset, Bytes bytes, const char* purpose) {
  if (bytes == 0) return Region(nullptr, 0);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, static_cast<off_t>(offset));
  if (data == MAP_FAILED) {
    return Error{Code::kNoMemory,
                 fmt::format("cannot map {} ({} bytes) of memory for {}: {}; lower the memory budget "
                             "or raise the process's address space limit (ulimit -v)",
                             format_bytes(bytes), bytes, purpose, std::system_category().message(errno))};
  }
  return Region(static_cast<std::byte*>(data), bytes);
}

Region::Region(Region&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Region& Region::operator=(Region&& other) noexcept {
  Region moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(size_, moved.size_);
  return *this;
}

Region::~Region() {
  if (data_ == nullptr) return;
  FORELOAD_CHECK(munmap(data_, size_) == 0, "a region unmaps exactly what it mapped");
}

}  // namespace foreload
