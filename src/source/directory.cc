#include "source/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <span>

#include "base/hash.h"
#include "base/open_below.h"

namespace foreload {

namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

class DirectoryStream {
 public:
  // Reads from its own description of the directory, from the beginning.
  explicit DirectoryStream(int directory) {
    const int fd = openat(directory, ".", kDirectoryFlags);
    if (fd < 0) return;
    stream_ = fdopendir(fd);
    if (stream_ == nullptr) close(fd);
  }
  ~DirectoryStream() {
    if (stream_ != nullptr) closedir(stream_);
  }
  DirectoryStream(const DirectoryStream&) = delete;
  DirectoryStream& operator=(const DirectoryStream&) = delete;

  bool valid() const { return stream_ != nullptr; }
  int fd() const { return dirfd(stream_); }
  // nullptr at the end (errno is 0) and on errors.
  const dirent* next() {
    errno = 0;
    return readdir(stream_);
  }

 private:
  DIR* stream_ = nullptr;
};

EntryKind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  if (S_ISDIR(mode)) return EntryKind::kDirectory;
  return S_ISLNK(mode) ? EntryKind::kLink : EntryKind::kSpecial;
}

EntryKind kind_of(int directory, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return EntryKind::kFile;
    case DT_DIR:
      return EntryKind::kDirectory;
    case DT_LNK:
      return EntryKind::kLink;
    case DT_UNKNOWN: {  // some file systems do not say
      struct stat status {};
      if (fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return EntryKind::kSpecial;
      return kind_of_mode(status.st_mode);
    }
    default:
      return EntryKind::kSpecial;
  }
}

}  // namespace

int open_directory_below(int root, const std::string& path) {
  if (!path.empty()) return open_below_raw(root, path.c_str(), kDirectoryFlags);
  const int fd = openat(root, ".", kDirectoryFlags);
  return fd < 0 ? -errno : fd;
}

Result<DirectoryFacts> list_directory(int directory, const std::string& display,
                                      const std::function<void(std::string_view, EntryKind)>& visit) {
  struct stat status {};
  if (fstat(directory, &status) != 0) return errno_error("cannot examine the folder " + display, errno);
  DirectoryStream stream(directory);
  if (!stream.valid()) return errno_error("cannot open the folder " + display, errno);
  DirectoryFacts facts{status.st_dev, status.st_ino, stamp_from(status).mtime_ns, 0};
  while (const dirent* entry = stream.next()) {
    const std::string_view name = entry->d_name;
    if (name.front() == '.') continue;
    const EntryKind kind = kind_of(stream.fd(), *entry);
    facts.listing += hash_bytes(std::as_bytes(std::span(name)), static_cast<std::uint64_t>(kind));
    visit(name, kind);
  }
  if (errno != 0) return errno_error("cannot list the folder " + display, errno);
  return facts;
}

Result<DirectoryFacts> examine_directory(int root, const std::string& path) {
  const int fd = open_directory_below(root, path);
  if (fd < 0) return errno_error("cannot open the folder " + path, -fd);
  const Descriptor directory(fd);
  return list_directory(directory.get(), path, [](std::string_view, EntryKind) {});
}

std::int64_t wall_clock_ns() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

}  // namespace foreload
