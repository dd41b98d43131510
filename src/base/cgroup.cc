// /proc/self/cgroup names the group inside each hierarchy, /proc/self/mountinfo where hierarchies are mounted
// and which group is the root of that mount (in a container often not the hierarchy's own root).
//
//   cgroup      4:memory:/jobs/a          mountinfo   … /jobs /sys/fs/cgroup/memory … - cgroup … rw,memory
//   folders     /sys/fs/cgroup/memory/a, /sys/fs/cgroup/memory
#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <sstream>

#include "base/files.h"

namespace foreload {

namespace {

constexpr Bytes kProcFileLimit = 16_MiB;

std::string read_or_empty(const std::string& path) {
  auto content = read_whole_file(path, kProcFileLimit);
  return content.ok() ? std::move(*content) : std::string();
}

// The first number in a file; nothing for "max" or a missing file.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop == text.data()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  return parse_number(read_or_empty(path));
}

// "KEY VALUE" lines, as in memory.stat.
std::uint64_t read_field(const std::string& path, const std::string& key) {
  std::istringstream lines(read_or_empty(path));
  std::string name;
  std::string value;
  while (lines >> name >> value) {
    if (name == key) return parse_number(value).value_or(0);
  }
  return 0;
}

bool lists(std::string_view comma_separated, std::string_view word) {
  while (!comma_separated.empty()) {
    const std::size_t comma = std::min(comma_separated.find(','), comma_separated.size());
    if (comma_separated.substr(0, comma) == word) return true;
    comma_separated.remove_prefix(std::min(comma + 1, comma_separated.size()));
  }
  return false;
}

// The group of this process in the hierarchy of `controller`; "" names v2.
std::optional<std::string> group_of(const std::string& root, std::string_view controller) {
  std::istringstream lines(read_or_empty(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : lists(controllers, controller)) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string group;  // which group is visible at `folder`
  std::string folder;
};

std::optional<Mount> mount_of(const std::string& root, std::string_view controller) {
  std::istringstream lines(read_or_empty(root + "/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string id, parent, device, type, device_name, options;
    Mount mount;
    before >> id >> parent >> device >> mount.group >> mount.folder;
    after >> type >> device_name >> options;
    if (controller.empty() ? type == "cgroup2" : type == "cgroup" && lists(options, controller)) return mount;
  }
  return std::nullopt;
}

std::vector<std::string> folders_of(const std::string& root, std::string_view controller) {
  const auto group = group_of(root, controller);
  const auto mount = mount_of(root, controller);
  if (!group || !mount) return {};
  std::string below = *group;
  if (mount->group != "/") {
    // A group outside of what is mounted can not be looked at; the mounted one still limits us.
    const bool inside =
        below.starts_with(mount->group) && (below.size() == mount->group.size() || below[mount->group.size()] == '/');
    below = inside ? below.substr(mount->group.size()) : "";
  }
  std::vector<std::string> folders;
  while (below.size() > 1) {
    folders.push_back(root + mount->folder + below);
    below.resize(std::min(below.rfind('/'), below.size() - 1));
  }
  folders.push_back(root + mount->folder);
  return folders;
}

Bytes headroom(Bytes limit, Bytes usage, Bytes reclaimable) {
  const Bytes held = usage - std::min(usage, reclaimable);
  return limit - std::min(limit, held);
}

}  // namespace

Cgroups find_cgroups(const std::string& root) {
  return {folders_of(root, ""), folders_of(root, "memory"), folders_of(root, "cpu")};
}

double cgroup_cores(const Cgroups& groups) {
  double cores = std::numeric_limits<double>::infinity();
  const auto tighten = [&cores](std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period) {
    if (quota && period && *period > 0)
      cores = std::min(cores, static_cast<double>(*quota) / static_cast<double>(*period));
  };
  for (const std::string& folder : groups.unified) {
    const std::string line = read_or_empty(folder + "/cpu.max");  // "QUOTA PERIOD" or "max PERIOD"
    const std::size_t blank = std::min(line.find(' '), line.size());
    tighten(parse_number(line), parse_number(std::string_view(line).substr(std::min(blank + 1, line.size()))));
  }
  for (const std::string& folder : groups.cpu) {
    // -1, no quota, is not parsed as a number.
    tighten(read_number(folder + "/cpu.cfs_quota_us"), read_number(folder + "/cpu.cfs_period_us"));
  }
  return cores;
}

// Inactive file pages are given back before anyone is killed for memory, so they do not count as used.
Bytes cgroup_memory_headroom(const Cgroups& groups) {
  Bytes least = kUnlimited;
  for (const std::string& folder : groups.unified) {
    const auto limit = read_number(folder + "/memory.max");
    const auto usage = read_number(folder + "/memory.current");
    if (limit && usage)
      least = std::min(least, headroom(*limit, *usage, read_field(folder + "/memory.stat", "inactive_file")));
  }
  for (const std::string& folder : groups.memory) {
    const auto limit = read_number(folder + "/memory.limit_in_bytes");
    const auto usage = read_number(folder + "/memory.usage_in_bytes");
    if (!limit || !usage) continue;
    least = std::min(least, headroom(*limit, *usage, read_field(folder + "/memory.stat", "total_inactive_file")));
  }
  return least;
}

}  // namespace foreload
