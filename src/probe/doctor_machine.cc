#include "probe/doctor_machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/io_engines.h"
#include "base/machine.h"
#include "base/text.h"

namespace foreload {

namespace {

constexpr unsigned kReads = 128;            // that a loader has under way at most
constexpr std::uint64_t kOwnFiles = 8;      // measured: with fewer, every run ends with "Too many open files"
constexpr std::uint64_t kSureFiles = 24;    // measured: with fewer, some do, where reads were tried too often
constexpr std::uint64_t kSpareFiles = 64;   // with what a training script opens beside
constexpr std::uint64_t kMostShards = 256;  // that the source tier keeps open
constexpr Bytes kSmallShm = 1_GiB;
constexpr Bytes kSmallMemory = 512_MiB;
constexpr std::int64_t kNoEarlier = 1'672'531'200;  // 2023: nobody ran this before
constexpr Duration kSlowClock = std::chrono::nanoseconds(500);

std::uint64_t soft_limit(__rlimit_resource resource, std::uint64_t* hard = nullptr) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return kNoLimit;
  if (hard != nullptr) *hard = limit.rlim_max == RLIM_INFINITY ? kNoLimit : limit.rlim_max;
  return limit.rlim_cur == RLIM_INFINITY ? kNoLimit : limit.rlim_cur;
}

std::optional<std::string> first_line(const std::string& path) {
  const auto content = read_whole_file(path, 64_KiB);
  if (!content) return std::nullopt;
  return std::string(trimmed(content->substr(0, content->find('\n'))));
}

unsigned affine_cores() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return static_cast<unsigned>(CPU_COUNT(&mask));
  return static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

Duration cost_of_clock() {
  constexpr int kLooks = 2000;
  const Time begin = now();
  for (int i = 0; i < kLooks; ++i) (void)now();
  return (now() - begin) / kLooks;
}

std::string limit_text(std::uint64_t bytes) {
  return bytes == kNoLimit ? "unlimited" : format_bytes(bytes);
}

}  // namespace

MachineView look_at_machine() {
  MachineView view;
  view.uring_error = open_ring_engine({.kind = "uring", .depth = kReads}).error_number;
  if (const auto text = first_line("/proc/sys/kernel/io_uring_disabled"))
    view.uring_disabled = std::atoi(text->c_str());
  view.in_container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
  view.memlock = soft_limit(RLIMIT_MEMLOCK);
  view.open_files = soft_limit(RLIMIT_NOFILE, &view.open_files_hard);
  view.file_size = soft_limit(RLIMIT_FSIZE);
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) view.shm = Bytes{shm.f_blocks} * shm.f_frsize;
  view.online_cores = static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  view.affine_cores = affine_cores();
  const Cgroups groups = find_cgroups("");
  view.quota_cores = cgroup_cores(groups);
  view.group_headroom = cgroup_memory_headroom(groups);
  view.memory = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  view.available = available_memory();
  view.clock_read = cost_of_clock();
  view.clock_source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource").value_or("");
  view.wall_clock = static_cast<std::int64_t>(std::time(nullptr));
  return view;
}

Finding judge_io_uring(const MachineView& view) {
  if (view.uring_error == 0) return {Severity::kOk, "io_uring", "works"};
  Finding finding{Severity::kCosts, "io_uring", fmt::format("does not work here: {}", std::strerror(view.uring_error)),
                  "files are read by a pool of threads instead: the same bytes, more CPU time for each read"};
  if (view.uring_error == ENOMEM) {
    finding.mend = "ulimit -l unlimited (before Linux 5.12 rings count as locked memory)";
  } else if (view.uring_error == ENOSYS || view.uring_error == EOPNOTSUPP) {
    finding.mend = "a kernel since 5.11; in a sandbox that has no io_uring nothing helps";
  } else if (view.uring_disabled.value_or(0) != 0) {
    finding.mend = "sysctl kernel.io_uring_disabled=0 (as root, on the host)";
  } else {
    finding.mend =
        "a seccomp filter forbids it, as Docker's and Kubernetes' own do: allow io_uring_setup, io_uring_enter and "
        "io_uring_register in its profile, or docker run --security-opt seccomp=unconfined";
  }
  return finding;
}

// Rings count as locked memory only before Linux 5.12: whether they work was tried.
Finding judge_memlock(const MachineView& view) {
  const std::string found = fmt::format("{} may be locked", limit_text(view.memlock));
  if (view.uring_error == ENOMEM) {
    return {Severity::kCosts, "memlock", found, "too little for io_uring", "ulimit -l unlimited"};
  }
  if (view.memlock >= 64_KiB) return {Severity::kOk, "memlock", found};
  return {Severity::kNote, "memlock", found, "enough for foreload; RDMA between hosts (MPI) needs more",
          "ulimit -l unlimited"};
}

Finding judge_open_files(const MachineView& view, const DatasetNeeds& needs) {
  const std::uint64_t shards = std::min(needs.kept_open, kMostShards);
  const std::uint64_t least = kOwnFiles + shards;
  const std::uint64_t sure = kSureFiles + shards;
  const std::uint64_t enough = kSpareFiles + kReads + shards;
  const std::string found = view.open_files == kNoLimit
                                ? "unlimited"
                                : fmt::format("{} may be open, a loader uses up to {}", view.open_files, enough);
  if (view.open_files >= enough) return {Severity::kOk, "open files", found};
  const bool may_raise = view.open_files_hard >= enough;
  const std::string mend =
      fmt::format("ulimit -n {}{}", std::min<std::uint64_t>(view.open_files_hard, 65536),
                  may_raise ? "" : " is the most; more needs root, or the container's or service's own setting");
  if (view.open_files < least) {
    return {Severity::kBreaks, "open files", found, "reads fail with \"Too many open files\"",
            may_raise ? mend
                      : fmt::format("raise the hard limit of {} (docker run --ulimit nofile=65536, "
                                    "LimitNOFILE= of a service)",
                                    view.open_files_hard)};
  }
  return {Severity::kCosts, "open files", found,
          view.open_files < sure ? "reads wait for each other and are tried again; now and then a run ends with \"Too "
                                   "many open files\""
                                 : "reads wait for each other, and are tried again",
          mend};
}

Finding judge_file_size(const MachineView& view) {
  if (view.file_size == kNoLimit) return {Severity::kOk, "file size", "files may be of any length"};
  return {Severity::kCosts, "file size", fmt::format("no file may be longer than {}", format_bytes(view.file_size)),
          "disk cache, index, event record and the shards of foreload convert end there", "ulimit -f unlimited"};
}

// Foreload's own shared memory has no name and no place in /dev/shm.
Finding judge_shared_memory(const MachineView& view) {
  constexpr const char* kCost =
      "nothing for foreload, which does not use it; worker processes of torch's own DataLoader need it";
  if (!view.shm) return {Severity::kNote, "/dev/shm", "there is none", kCost, "mount -t tmpfs tmpfs /dev/shm"};
  const std::string found = fmt::format("{} large", format_bytes(*view.shm));
  if (*view.shm >= kSmallShm) return {Severity::kOk, "/dev/shm", found};
  return {Severity::kNote, "/dev/shm", found, kCost,
          view.in_container ? "docker run --shm-size=8g" : "mount -o remount,size=8G /dev/shm (as root)"};
}

Finding judge_cores(const MachineView& view) {
  const double usable = std::min<double>(view.affine_cores, view.quota_cores);
  const std::string all = fmt::format("{:.3g} of {} may be used", usable, counted(view.online_cores, "core"));
  if (usable >= view.online_cores) return {Severity::kOk, "cores", all};
  const bool by_quota = view.quota_cores < view.affine_cores;
  const std::string found =
      fmt::format("{}: {}", all, by_quota ? "the quota of a control group" : "the affinity of this process");
  const std::string cost =
      fmt::format("prep runs on {:.3g} instead of {}{}", std::ceil(usable), counted(view.online_cores, "core"),
                  by_quota && usable != std::floor(usable) ? ", with pauses" : "");
  const char* const mend = by_quota ? "docker run --cpus=N, resources.limits.cpu in Kubernetes, or no limit"
                                    : "taskset -c 0-N, srun --cpus-per-task=N, or torchrun without core binding";
  return {2 * usable <= view.online_cores ? Severity::kCosts : Severity::kNote, "cores", found, cost, mend};
}

Finding judge_memory(const MachineView& view, const DatasetNeeds& needs) {
  const Bytes budget = view.available / 2;
  // Both were read, but not at the same moment.
  const bool is_limited = view.group_headroom - view.group_headroom / 8 <= view.available;
  const std::string found = fmt::format("{} of {} are available{}", format_bytes(view.available),
                                        format_bytes(view.memory), is_limited ? ", the limit of a control group" : "");
  const std::string more =
      "docker run --memory=N, resources.limits.memory in Kubernetes, srun --mem=N, or a larger machine";
  if (needs.largest > budget) {
    return {Severity::kBreaks, "memory", found,
            fmt::format("the largest sample has {}, more than the {} that a loader takes by itself",
                        format_bytes(needs.largest), format_bytes(budget)),
            more};
  }
  if (view.available < kSmallMemory) {
    return {Severity::kCosts, "memory", found, "little is left for batches, and nothing for a cache", more};
  }
  if (needs.bytes <= budget) return {Severity::kOk, "memory", found};
  return {Severity::kNote, "memory", found,
          fmt::format("the cache of {} that a loader takes by itself holds {:.0f} % of the dataset ({}); the rest is "
                      "read in every epoch",
                      format_bytes(budget), 100 * static_cast<double>(budget) / static_cast<double>(needs.bytes),
                      format_bytes(needs.bytes)),
          "--memory, --disk DIR, or several hosts that share (--peers); foreload analyze says what that gains"};
}

Finding judge_clock(const MachineView& view, const DatasetNeeds& needs) {
  if (view.wall_clock < kNoEarlier) {
    return {needs.is_remote ? Severity::kBreaks : Severity::kNote, "clock",
            fmt::format("it is {} s after 1970: the clock is wrong", view.wall_clock),
            "servers refuse signatures (s3) and certificates (https, peers)", "set it, or start the time service"};
  }
  const std::string found = fmt::format("a look at it takes {}{}{}", format_duration(view.clock_read),
                                        view.clock_source.empty() ? "" : ", source ", view.clock_source);
  if (view.clock_read < kSlowClock) return {Severity::kOk, "clock", found};
  return {Severity::kCosts, "clock", found, "every sample is timed several times",
          "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource (as root, where the machine "
          "offers it)"};
}

Findings judge_machine(const MachineView& view, const DatasetNeeds& needs) {
  return {judge_cores(view),         judge_memory(view, needs),     judge_io_uring(view),
          judge_memlock(view),       judge_open_files(view, needs), judge_file_size(view),
          judge_shared_memory(view), judge_clock(view, needs)};
}

}  // namespace foreload
