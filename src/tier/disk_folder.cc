// A new folder holds nothing else until its lock file has the marker, so one that a killed process left without marker
// can be claimed. Files are made in folders that are empty or ours, and nowhere else. The marker is the only thing that
// is flushed: all else is found by hashes or not at all.
#include "tier/disk_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include "base/hash.h"
#include "base/open_below.h"
#include "base/write_file.h"
#include "tier/disk_table.h"

namespace foreload {
namespace {

constexpr std::string_view kPrefix = "foreload-cache-";
constexpr std::string_view kMarker = "A cache of foreload, version 1. It may be deleted when no run uses it.\n";
constexpr const char* kNotMadeByUs = "it was not made by this version of foreload";
constexpr int kMostNeighbours = 3;

Status make_folder(int directory, const std::string& name, const std::string& path, mode_t mode) {
  if (mkdirat(directory, name.c_str(), mode) == 0 || errno == EEXIST) return {};
  return errno_error("cannot make the folder " + path, errno);
}

struct CloseListing {
  void operator()(DIR* listing) const { closedir(listing); }
};

// Names in a folder other than "." and ".."; stops when `visit` returns false.
template <typename Visit>
void for_each_name(const Descriptor& folder, Visit visit) {
  const int copy = openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  const std::unique_ptr<DIR, CloseListing> listing(fdopendir(copy));
  if (!listing) {
    close(copy);
    return;
  }
  while (const dirent* entry = readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !visit(name)) return;
  }
}

}  // namespace

std::string DiskFolder::name_for(std::uint64_t fingerprint, std::optional<std::uint32_t> rank) {
  return fmt::format("{}v{}-{}{}", kPrefix, kDiskVersion, hex16(fingerprint),
                     rank ? fmt::format("-rank{}", *rank) : "");
}

Result<DiskFolder> DiskFolder::open(const std::string& parent, const std::string& name) {
  FORELOAD_TRY(make_folder(AT_FDCWD, parent, parent, 0777));
  FORELOAD_ASSIGN(const Descriptor above, open_directory(parent));
  const std::string path = parent + "/" + name;
  FORELOAD_TRY(make_folder(above.get(), name, path, 0700));
  Descriptor folder(open_retrying(above.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // Not kNotFound or kInvalid: the user's part of the path is right.
  if (!folder.valid()) return Error{Code::kIo, errno_error("cannot open the folder " + path, errno).message};
  DiskFolder opened(parent, path, std::move(folder));
  FORELOAD_TRY(opened.lock());
  return opened;
}

DiskFolder::~DiskFolder() {
  if (lock_.valid()) flock(lock_.get(), LOCK_UN);
}

Error DiskFolder::not_ours(const std::string& why) const {
  return {Code::kIo, fmt::format("{} is left alone, because {}: remove it, or choose another folder", path_, why)};
}

Status DiskFolder::lock() {
  struct stat status {};
  if (fstat(folder_.get(), &status) != 0) return errno_error("cannot examine " + path_, errno);
  if (status.st_uid != geteuid()) return not_ours("it belongs to another user");
  FORELOAD_ASSIGN(Descriptor lock, open_existing("lock", holds_nothing() ? O_CREAT : 0));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return errno_error("cannot lock " + path_, errno);
    return Error{Code::kIo, fmt::format("{} is in use by another loader: give each its own folder", path_)};
  }
  lock_ = std::move(lock);
  return check_marker();
}

bool DiskFolder::holds_nothing() const {
  bool nothing = true;
  for_each_name(folder_, [&nothing](std::string_view) { return nothing = false; });
  return nothing;
}

Status DiskFolder::check_marker() {
  std::array<char, kMarker.size()> found{};
  const ssize_t got = pread(lock_.get(), found.data(), found.size(), 0);
  if (got < 0) return errno_error("cannot read " + path_ + "/lock", errno);
  if (std::string_view(found.data(), static_cast<std::size_t>(got)) == kMarker) return {};
  bool empty = got == 0;
  for_each_name(folder_, [&empty](std::string_view name) { return empty = empty && name == "lock"; });
  if (!empty) return not_ours(kNotMadeByUs);
  FORELOAD_TRY(write_all(lock_.get(), std::as_bytes(std::span(kMarker)), path_ + "/lock"));
  if (fsync(lock_.get()) != 0 || fsync(folder_.get()) != 0)
    return errno_error("cannot write " + path_ + "/lock", errno);
  return {};
}

Result<Descriptor> DiskFolder::open_existing(const char* name, int extra_flags) const {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Descriptor file(open_retrying(folder_.get(), name, kFlags | extra_flags, 0600));
  if (!file.valid()) {
    if (errno == ENOENT && (extra_flags & O_CREAT) == 0) return not_ours(kNotMadeByUs);
    return Error{Code::kIo, errno_error(fmt::format("cannot open {}/{}", path_, name), errno).message};
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return errno_error("cannot examine " + path_, errno);
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1 || status.st_uid != geteuid()) {
    return not_ours(fmt::format("{} in it is no file of its own", name));
  }
  return file;
}

Result<Bytes> DiskFolder::free_bytes() const {
  struct statvfs status {};
  if (fstatvfs(folder_.get(), &status) != 0) return errno_error("cannot examine the file system of " + path_, errno);
  return static_cast<Bytes>(status.f_bavail) * status.f_frsize;
}

std::string DiskFolder::neighbours() const {
  std::string names;
  const auto above = open_directory(parent_);
  if (!above) return names;
  const std::string own = path_.substr(path_.rfind('/') + 1);
  int count = 0;
  for_each_name(*above, [&](std::string_view name) {
    if (!name.starts_with(kPrefix) || name == own) return true;
    names += (names.empty() ? "" : ", ") + std::string(name);
    return ++count < kMostNeighbours;
  });
  return names;
}

}  // namespace foreload
