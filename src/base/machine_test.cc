#include "base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/cgroup.h"
#include "base/files.h"
#include "base/region.h"
#include "base/test_folder.h"

namespace foreload {
namespace {

constexpr const char* kMountV2 = "30 1 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";

TEST(MachineTest, CoresFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cores(), 1u);
  EXPECT_LE(usable_cores(), static_cast<unsigned>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(MachineTest, MemoryIsLessThanTheMachineHas) {
  EXPECT_GT(available_memory(), 1_MiB);
  EXPECT_LT(available_memory(), static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
}

TEST(MachineTest, MemoryRespectsTheAddressSpaceLimit) {
  const auto statm = read_whole_file("/proc/self/statm", 64_KiB);
  ASSERT_TRUE(statm.ok());
  const Bytes used = std::stoull(*statm) * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = used + 100_MiB;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const Bytes available = available_memory();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_LE(available, 100_MiB);
}

bool peak_grows_by_what_is_touched() {
  const Bytes before = peak_resident_bytes();
  const auto region = Region::map(64_MiB, "a test");
  if (!region.ok()) return false;
  for (std::size_t i = 0; i < region->bytes().size(); i += 4096) {
    *const_cast<volatile std::byte*>(&region->bytes()[i]) = std::byte{1};
  }
  const Bytes after = peak_resident_bytes();
  return after >= before + 60_MiB && after <= before + 512_MiB;  // a sanitizer adds its shadow
}

// In a child, whose peak begins with what it holds now, whatever the tests before have used.
TEST(MachineTest, PeakGrowsByWhatIsTouched) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(peak_grows_by_what_is_touched() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(MachineTest, CpuTimeGrowsWithWork) {
  const double start = cpu_seconds();
  for (volatile int i = 0; cpu_seconds() < start + 0.005;) i = i + 1;
  EXPECT_GT(cpu_seconds(), start);
}

TEST(CgroupTest, NoGroupsMeanNoLimits) {
  const TestFolder machine;
  const Cgroups groups = find_cgroups(machine.path());
  EXPECT_TRUE(groups.unified.empty() && groups.memory.empty() && groups.cpu.empty());
  EXPECT_TRUE(std::isinf(cgroup_cores(groups)));
  EXPECT_EQ(cgroup_memory_headroom(groups), kUnlimited);
}

TEST(CgroupTest, VersionTwoTakesTheTightestGroupOnTheWayUp) {
  const TestFolder machine;
  machine.write("proc/self/cgroup", "0::/jobs/one\n");
  machine.write("proc/self/mountinfo", kMountV2);
  machine.write("sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
  machine.write("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  machine.write("sys/fs/cgroup/jobs/one/memory.current", "1000\n");
  machine.write("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  machine.write("sys/fs/cgroup/jobs/memory.max", "10000\n");
  machine.write("sys/fs/cgroup/jobs/memory.current", "7000\n");
  machine.write("sys/fs/cgroup/jobs/memory.stat", "anon 5000\ninactive_file 1500\nactive_file 500\n");
  const Cgroups groups = find_cgroups(machine.path());
  EXPECT_EQ(groups.unified.size(), 3u);
  EXPECT_DOUBLE_EQ(cgroup_cores(groups), 1.5);
  EXPECT_EQ(cgroup_memory_headroom(groups), 10'000u - (7'000 - 1'500));
}

TEST(CgroupTest, VersionOneReadsItsOwnFiles) {
  const TestFolder machine;
  machine.write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/\n0::/\n");
  machine.write("proc/self/mountinfo",
                "33 1 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                "34 1 0:31 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n");
  machine.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096000\n");
  machine.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "96000\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "123456789\n");
  machine.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  machine.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const Cgroups groups = find_cgroups(machine.path());
  EXPECT_DOUBLE_EQ(cgroup_cores(groups), 0.5);
  EXPECT_EQ(cgroup_memory_headroom(groups), 4'000'000u);
}

// In a container the mount often shows only the container's own group as "/".
TEST(CgroupTest, AMountOfASubgroupIsItsRoot) {
  const TestFolder machine;
  machine.write("proc/self/cgroup", "0::/pods/p1/c7\n");
  machine.write("proc/self/mountinfo", "30 1 0:26 /pods/p1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  machine.write("sys/fs/cgroup/c7/memory.max", "500\n");
  machine.write("sys/fs/cgroup/c7/memory.current", "600\n");
  const Cgroups groups = find_cgroups(machine.path());
  EXPECT_EQ(groups.unified,
            (std::vector<std::string>{machine.path("sys/fs/cgroup/c7"), machine.path("sys/fs/cgroup")}));
  EXPECT_EQ(cgroup_memory_headroom(groups), 0u);
  machine.write("proc/self/mountinfo", "30 1 0:26 /pods/p /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(find_cgroups(machine.path()).unified, (std::vector<std::string>{machine.path("sys/fs/cgroup")}));
}

}  // namespace
}  // namespace foreload
