// A new content is written to a file without a name (O_TMPFILE), which gets a temporary name when it is complete and is
// renamed at once. Where the file system has no such files, a named one is written. Named files of processes that were
// killed are "NAME.PID-N.tmp".
#include "base/write_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/open_below.h"

namespace foreload {

namespace {

constexpr int kMaxLinks = 40;       // as the kernel
constexpr int kMaxAttempts = 64;    // of names for temporary files
constexpr mode_t kFileMode = 0666;  // the umask narrows it
constexpr std::string_view kTemporaryEnd = ".tmp";
// Those of other machines look dead, too, but do not live so long.
constexpr auto kLeftoverAge = std::chrono::minutes(1);

// Splits at the last slash: the folder (of a name without one: ".") and the name.
std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// Calls make(name) with fresh names beside `path` until it does not fail because of the name.
template <typename Make>
int with_fresh_name(const std::string& path, std::string& temporary, Make make) {
  static std::atomic<unsigned> serial{0};
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    temporary = fmt::format("{}.{}-{}{}", path, getpid(), serial.fetch_add(1), kTemporaryEnd);
    const int result = make(temporary.c_str());
    if (result >= 0 || errno != EEXIST) return result;
  }
  return -1;
}

Status write_named(const std::string& path, std::span<const std::byte> content, std::string& temporary) {
  const Descriptor file(with_fresh_name(path, temporary, [](const char* name) {
    return open_retrying(AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  }));
  if (!file.valid()) return errno_error("cannot create " + std::exchange(temporary, ""), errno);
  return write_all(file.get(), content, path);
}

// The file gets its name when it is complete: who is killed before leaves nothing. False: not possible here.
Result<bool> write_nameless(const std::string& path, std::span<const std::byte> content, std::string& temporary) {
  const Descriptor file(
      open_retrying(AT_FDCWD, split_path(path).first.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kFileMode));
  if (!file.valid()) return false;
  FORELOAD_TRY(write_all(file.get(), content, path));
  const std::string self = fmt::format("/proc/self/fd/{}", file.get());
  const int linked = with_fresh_name(path, temporary, [&self](const char* name) {
    return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
  });
  if (linked != 0) temporary.clear();
  return linked == 0;
}

Status write_beside(const std::string& path, std::span<const std::byte> content, std::string& temporary) {
  FORELOAD_ASSIGN(const bool done, write_nameless(path, content, temporary));
  return done ? Status() : write_named(path, content, temporary);
}

// Is it "NAME.PID-N.tmp" of a process that does not run any more?
bool is_leftover(std::string_view entry, std::string_view name) {
  if (!entry.starts_with(name) || !entry.ends_with(kTemporaryEnd)) return false;
  if (entry.size() < name.size() + kTemporaryEnd.size() + 1 || entry[name.size()] != '.') return false;
  entry.remove_prefix(name.size() + 1);
  entry.remove_suffix(kTemporaryEnd.size());
  const char* const end = entry.data() + entry.size();
  pid_t process = 0;
  unsigned number = 0;
  const auto [dash, problem] = std::from_chars(entry.data(), end, process);
  if (problem != std::errc() || process <= 0 || dash == end || *dash != '-') return false;
  const auto [stop, problem_after] = std::from_chars(dash + 1, end, number);
  return problem_after == std::errc() && stop == end && kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

Status write_all(int fd, std::span<const std::byte> content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("cannot write " + path, errno);
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<Descriptor> create_output(const std::string& path) {
  // O_NONBLOCK: a pipe without reader fails (ENXIO) instead of waiting for one.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  Descriptor file(open_retrying(AT_FDCWD, path.c_str(), kFlags, kFileMode));
  struct stat status {};
  const bool is_open = file.valid() && fstat(file.get(), &status) == 0;
  if (!is_open && errno != ENXIO) return errno_error("cannot create " + path, errno);
  const bool is_allowed = is_open && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode));
  if (is_allowed && fcntl(file.get(), F_SETFL, 0) != 0) return errno_error("cannot prepare " + path, errno);
  if (is_allowed) return file;
  return Error{Code::kInvalid, fmt::format("cannot write to {}: it is a pipe or socket; give a file", path)};
}

Status replace_file(const std::string& path, std::span<const std::byte> content) {
  struct stat before {};
  if (lstat(path.c_str(), &before) == 0 && !S_ISREG(before.st_mode) && !S_ISLNK(before.st_mode)) {
    return Error{Code::kInvalid, fmt::format("{} is not a regular file, so it is not replaced", path)};
  }
  std::string temporary;
  Status status = write_beside(path, content, temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = errno_error("cannot replace " + path, errno);
  }
  if (!status.ok() && !temporary.empty() && unlink(temporary.c_str()) != 0 && errno != ENOENT) {
    return Error{status.error().code, fmt::format("{}; {} is left behind", status.error().message, temporary)};
  }
  return status;
}

void remove_leftovers(const std::string& path) {
  const auto [folder, name] = split_path(path);
  const Time oldest = std::chrono::system_clock::now().time_since_epoch() - kLeftoverAge;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string& leftover = entry->path().native();
    struct stat status {};
    if (!is_leftover(entry->path().filename().native(), name)) continue;
    if (lstat(leftover.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    // One that can not be removed is no worse than before.
    if (stamp_from(status).mtime_ns < oldest.count()) unlink(leftover.c_str());
  }
}

Result<std::string> follow_links(const std::string& path) {
  std::string here = path;
  for (int links = 0; links <= kMaxLinks; ++links) {
    std::string target(PATH_MAX, '\0');
    const ssize_t length = readlink(here.c_str(), target.data(), target.size());
    if (length < 0 && (errno == EINVAL || errno == ENOENT)) return here;  // no link, or nothing at all
    if (length < 0) return errno_error("cannot examine " + path, errno);
    target.resize(static_cast<std::size_t>(length));
    here = target.front() == '/' ? target : fmt::format("{}/{}", split_path(here).first, target);
  }
  return errno_error("cannot follow the link " + path, ELOOP);
}

}  // namespace foreload
