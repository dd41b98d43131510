#include "probe/storage_page_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <sstream>

#include "base/cgroup.h"
#include "base/files.h"
#include "base/thread.h"
#include "base/write_file.h"
#include "foreload/schedule.h"
#include "probe/storage_set.h"

namespace foreload {
namespace {

constexpr Bytes kProcFileLimit = 64_KiB;

Status write_setting(const std::string& path, const std::string& value) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return errno_error("cannot open " + path, errno);
  return write_all(file.get(), std::as_bytes(std::span(value)), path);
}

// A new group below `parent`, with a limit. Nothing is left behind on error.
Result<std::string> make_below(const std::string& parent, const char* setting, Bytes limit) {
  const std::string folder = fmt::format("{}/foreload-bench-{}", parent, ::getpid());
  if (::mkdir(folder.c_str(), 0755) != 0) return errno_error("cannot make the control group " + folder, errno);
  Status limited = write_setting(folder + "/" + setting, std::to_string(limit));
  if (limited.ok()) return folder;
  ::rmdir(folder.c_str());
  return std::move(limited).error();
}

// Bytes that this process, with all its threads, has caused to be read from block devices.
Result<Bytes> device_bytes() {
  FORELOAD_ASSIGN(const std::string text, read_whole_file("/proc/self/io", kProcFileLimit));
  std::istringstream lines(text);
  std::string name;
  Bytes value = 0;
  while (lines >> name >> value) {
    if (name == "read_bytes:") return value;
  }
  return Error{Code::kIo, "/proc/self/io does not say what was read from block devices"};
}

Status read_file(const std::string& path, std::span<std::byte> into) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno_error("cannot open " + path, errno);
  return read_exactly(file.get(), 0, into);
}

Status read_epoch(const PageCacheJob& job, const Schedule& schedule, Epoch epoch) {
  std::atomic<Position> next{0};
  std::vector<Status> ends(job.threads);
  parallel_for(job.threads, job.threads, [&](std::uint64_t thread) {
    std::vector<std::byte> buffer(StorageSet::kLength);
    for (Position at = next++; at < job.size && ends[thread].ok(); at = next++) {
      ends[thread] = read_file(StorageSet::file_in(job.samples, schedule.sample_at(epoch, at)), buffer);
    }
  });
  for (Status& end : ends) FORELOAD_TRY(std::move(end));
  return {};
}

}  // namespace

Result<MemoryGroup> MemoryGroup::make(Bytes limit) {
  const Cgroups ours = find_cgroups("");
  Error last{Code::kNotFound, "there is no memory control group here"};
  if (!ours.memory.empty()) {
    auto folder = make_below(ours.memory.front(), "memory.limit_in_bytes", limit);
    if (folder.ok()) return MemoryGroup(std::move(*folder));
    last = std::move(folder).error();
  }
  // A v2 group that has processes can not limit groups below it; one further up may.
  for (const std::string& parent : ours.unified) {
    auto folder = make_below(parent, "memory.max", limit);
    if (folder.ok()) return MemoryGroup(std::move(*folder));
    last = std::move(folder).error();
  }
  return last;
}

MemoryGroup::MemoryGroup(MemoryGroup&& other) noexcept : folder_(std::move(other.folder_)) {
  other.folder_.clear();
}

MemoryGroup::~MemoryGroup() {
  if (!folder_.empty()) ::rmdir(folder_.c_str());
}

Status MemoryGroup::enter(const std::string& folder) {
  return write_setting(folder + "/cgroup.procs", std::to_string(::getpid()));
}

Result<std::vector<Bytes>> read_through_page_cache(const PageCacheJob& job) {
  const Schedule schedule({.samples = job.size, .seed = 1});
  std::vector<Bytes> read;
  for (Epoch epoch = 0; epoch < job.epochs; ++epoch) {
    FORELOAD_ASSIGN(const Bytes before, device_bytes());
    FORELOAD_TRY(read_epoch(job, schedule, epoch));
    FORELOAD_ASSIGN(const Bytes after, device_bytes());
    read.push_back(after - before);
  }
  return read;
}

}  // namespace foreload
