// Files: descriptors that close themselves, opening below a root without ever leaving it, reading.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "foreload/types.h"

namespace foreload {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "cannot open FILE: No such file or directory", with a code that fits errno.
Error errno_error(std::string_view what, int error_number);

Result<Descriptor> open_directory(const std::string& path);
// Opens a regular file for reading below `root`. Refused: absolute paths, "..", links that lead
// outside, devices, pipes and sockets (without blocking on them). `extra_flags`: O_DIRECT or 0.
Result<Descriptor> open_below(int root, const std::string& path, int extra_flags = 0);
Result<FileStamp> stamp_of(int fd);

// Fills `into` from `offset` on. kDataChanged: the file ends before. The messages do not know the file's name.
Status read_exactly(int fd, Bytes offset, std::span<std::byte> into);
Result<std::string> read_whole_file(const std::string& path, Bytes limit);

// A read-only mapping of a whole file.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace foreload
