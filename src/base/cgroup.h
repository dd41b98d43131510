// The limits that control groups (v1 or v2) put on this process: the tightest of its group and all groups above it.
#pragma once

#include <string>
#include <vector>

#include "foreload/types.h"

namespace foreload {

inline constexpr Bytes kUnlimited = ~Bytes{0};

// Folders of the groups that this process belongs to, innermost first.
struct Cgroups {
  std::vector<std::string> unified;  // v2
  std::vector<std::string> memory;   // v1
  std::vector<std::string> cpu;      // v1
};

// `root` stands in front of every path that is read: "" on a real machine, a made-up tree in tests.
Cgroups find_cgroups(const std::string& root);

double cgroup_cores(const Cgroups& groups);           // quota / period; infinity without a quota
Bytes cgroup_memory_headroom(const Cgroups& groups);  // limit - usage that can not be given back; or kUnlimited

}  // namespace foreload
