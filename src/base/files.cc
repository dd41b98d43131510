// open_below leaves the walk to the kernel (openat2 with RESOLVE_BENEATH). Where that call is missing or
// forbidden, the same walk is made here, one component at a time with O_NOFOLLOW:
//
//   directories   [root] [a] [b]        a stack of descriptors; ".." inside a link pops one
//   remaining     c / d.jpg             a link's target is put in front; absolute targets are refused
//
// Every step starts from a descriptor that was reached from the root, so renames can not lead outside.
#include "base/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <deque>
#include <system_error>

#include "base/check.h"
#include "base/open_below.h"
#include "base/text.h"

namespace foreload {

namespace {

constexpr int kMaxLinks = 40;     // as the kernel
constexpr int kMaxAttempts = 64;  // of openat2 while directories are renamed

std::string errno_text(int error_number) {
  return std::system_category().message(error_number);
}

Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EXDEV:
      return Code::kInvalid;
    case ENOMEM:
      return Code::kNoMemory;
    default:
      return Code::kIo;
  }
}

void push_front_components(std::deque<std::string>& components, std::string_view path) {
  std::deque<std::string> added;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) added.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  components.insert(components.begin(), added.begin(), added.end());
}

// Replaces the link `name` by its target in `components`. Returns 0 or an errno.
int follow_link(int directory, const std::string& name, std::deque<std::string>& components) {
  std::string target(PATH_MAX, '\0');
  const ssize_t length = readlinkat(directory, name.c_str(), target.data(), target.size());
  if (length < 0) return errno == EINVAL ? ENOTDIR : errno;
  target.resize(static_cast<std::size_t>(length));
  if (target.empty() || target.front() == '/') return EXDEV;
  push_front_components(components, target);
  return 0;
}

}  // namespace

int open_retrying(int directory, const char* path, int flags, mode_t mode) {
  int fd = openat(directory, path, flags, mode);
  while (fd < 0 && errno == EINTR) fd = openat(directory, path, flags, mode);
  return fd;
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  Descriptor moved(std::move(other));
  std::swap(fd_, moved.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ < 0) return;
  // After EINTR and EIO the descriptor is gone as well: closing again could hit someone else's.
  const int result = close(fd_);
  FORELOAD_CHECK(result == 0 || errno != EBADF, "nobody else closes an owned descriptor");
}

Error errno_error(std::string_view what, int error_number) {
  return {code_of_errno(error_number), fmt::format("{}: {}", what, errno_text(error_number))};
}

Result<Descriptor> open_directory(const std::string& path) {
  const int fd = open_retrying(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_error("cannot open the folder " + path, errno);
  return Descriptor(fd);
}

bool is_plain_relative(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return false;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (path.substr(0, slash) == "..") return false;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return true;
}

int open_below_by_kernel(int root, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = kResolveBelow;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    // EAGAIN: a directory was renamed while ".." of a link was resolved.
    if (errno != EINTR && errno != EAGAIN) return -errno;
  }
  return -EAGAIN;
}

int open_below_by_steps(int root, const char* path, int flags) {
  if (*path == '\0') return -ENOENT;
  if (*path == '/') return -EXDEV;
  std::vector<Descriptor> directories;
  std::deque<std::string> components;
  push_front_components(components, path);
  int links = 0;
  while (!components.empty()) {
    const int here = directories.empty() ? root : directories.back().get();
    const std::string name = components.front();
    components.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      if (directories.empty()) return -EXDEV;
      directories.pop_back();
      continue;
    }
    const bool last = components.empty();
    const int fd = open_retrying(here, name.c_str(), O_NOFOLLOW | (last ? flags : O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (fd >= 0 && last) return fd;
    if (fd >= 0) {
      directories.emplace_back(fd);
      continue;
    }
    // ENOTDIR: a link in the middle, seen by O_DIRECTORY before O_NOFOLLOW.
    if (errno != ELOOP && errno != ENOTDIR) return -errno;
    if (++links > kMaxLinks) return -ELOOP;
    if (const int error = follow_link(here, name, components); error != 0) return -error;
  }
  return -EISDIR;  // the path ended in "." or ".."
}

int open_below_raw(int root, const char* path, int flags) {
  const int fd = open_below_by_kernel(root, path, flags);
  return fd == -ENOSYS || fd == -EPERM ? open_below_by_steps(root, path, flags) : fd;
}

Result<Descriptor> open_below(int root, const std::string& path, int extra_flags) {
  if (!is_plain_relative(path)) {
    return Error{Code::kInvalid,
                 fmt::format("\"{}\" is not a path below its root folder: absolute paths and \"..\" are "
                             "refused",
                             path)};
  }
  const int fd = open_below_raw(root, path.c_str(), kOpenBelowFlags | extra_flags);
  if (fd == -EXDEV || fd == -ELOOP) {
    return Error{Code::kInvalid,
                 fmt::format("{} is or contains a link that leads outside of its root folder, or to itself", path)};
  }
  if (fd == -ENXIO) return Error{Code::kInvalid, fmt::format("{} is not a regular file", path)};
  if (fd < 0) return errno_error("cannot open " + path, -fd);
  Descriptor descriptor(fd);
  struct stat status {};
  if (fstat(fd, &status) != 0) return errno_error("cannot examine " + path, errno);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, fmt::format("{} is not a regular file", path)};
  return descriptor;
}

Result<FileStamp> stamp_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return errno_error("cannot examine an open file", errno);
  return stamp_from(status);
}

FileStamp stamp_from(const struct stat& status) {
  return {static_cast<Bytes>(status.st_size),
          static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

namespace {

// Opens without waiting for the other end of a pipe, and refuses what is not a regular file.
Result<Descriptor> open_regular(const std::string& path, struct stat& status) {
  const int fd = open_retrying(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno_error("cannot open " + path, errno);
  Descriptor descriptor(fd);
  if (fstat(fd, &status) != 0) return errno_error("cannot examine " + path, errno);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, path + " is not a regular file"};
  return descriptor;
}

}  // namespace

Status read_exactly(int fd, Bytes offset, std::span<std::byte> into) {
  for (std::size_t done = 0; done < into.size();) {
    const ssize_t got = pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return errno_error(fmt::format("cannot read {} bytes at offset {}", into.size(), offset), errno);
    }
    if (got == 0) {
      return Error{Code::kDataChanged, fmt::format("the file ends at byte {}, but {} bytes at offset {} belong to it: "
                                                   "it was cut",
                                                   offset + done, into.size(), offset)};
    }
    done += static_cast<std::size_t>(got);
  }
  return {};
}

// The size is not asked for: files of /proc have none.
Result<std::string> read_whole_file(const std::string& path, Bytes limit) {
  struct stat status {};
  FORELOAD_ASSIGN(const Descriptor file, open_regular(path, status));
  std::string content;
  for (;;) {
    constexpr std::size_t kStep = 64 << 10;
    const std::size_t filled = content.size();
    content.resize(filled + std::max<std::size_t>(kStep, filled));
    const ssize_t got = read(file.get(), content.data() + filled, content.size() - filled);
    content.resize(filled + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read " + path, errno);
    if (got == 0) return content;
    if (content.size() > limit) {
      return Error{Code::kInvalid, fmt::format("{} is longer than the {} allowed here", path, format_bytes(limit))};
    }
  }
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  struct stat status {};
  FORELOAD_ASSIGN(const Descriptor file, open_regular(path, status));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile(nullptr, 0);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return errno_error("cannot map " + path, errno);
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(size_, moved.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  FORELOAD_CHECK(munmap(const_cast<std::byte*>(data_), size_) == 0, "a mapping unmaps exactly what it mapped");
}

}  // namespace foreload
