#include "base/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "base/cgroup.h"
#include "base/check.h"
#include "base/files.h"

namespace foreload {

namespace {

// A larger machine than the mask can name makes the call fail; then all processors count.
unsigned cores_by_affinity() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return static_cast<unsigned>(CPU_COUNT(&mask));
  return std::thread::hardware_concurrency();
}

// A line like "MemAvailable:  123 kB" of a file in /proc.
std::optional<Bytes> read_kib_line(const std::string& path, const std::string& key) {
  const auto content = read_whole_file(path, 1_MiB);
  if (!content.ok()) return std::nullopt;
  std::istringstream lines(*content);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Bytes kib = 0;
    if (words >> name >> kib && name == key) return kib << 10;
  }
  return std::nullopt;
}

// RLIMIT_AS counts address space, of which /proc/self/statm says how much is taken.
Bytes address_space_left() {
  rlimit limit{};
  FORELOAD_CHECK(getrlimit(RLIMIT_AS, &limit) == 0, "RLIMIT_AS exists");
  if (limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const auto content = read_whole_file("/proc/self/statm", 64_KiB);
  const Bytes pages = content.ok() ? std::strtoull(content->c_str(), nullptr, 10) : 0;
  const Bytes used = pages * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<Bytes>(limit.rlim_cur, used);
}

rusage usage_of_process() {
  rusage usage{};
  FORELOAD_CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "RUSAGE_SELF exists");
  return usage;
}

double to_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

unsigned usable_cores() {
  // A quota of 1.5 cores is best used by two threads: one would leave a third of it idle.
  const double quota = std::ceil(cgroup_cores(find_cgroups("")));
  const unsigned cores = cores_by_affinity();
  return std::max(1u, quota < cores ? static_cast<unsigned>(quota) : cores);
}

Bytes available_memory() {
  const Bytes free = read_kib_line("/proc/meminfo", "MemAvailable:").value_or(kUnlimited);
  return std::min({free, cgroup_memory_headroom(find_cgroups("")), address_space_left()});
}

// Not first by getrusage: its value survives exec and would count what a large parent had before.
Bytes peak_resident_bytes() {
  if (const auto peak = read_kib_line("/proc/self/status", "VmHWM:")) return *peak;
  return static_cast<Bytes>(usage_of_process().ru_maxrss) << 10;
}

double cpu_seconds() {
  const rusage usage = usage_of_process();
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

}  // namespace foreload
