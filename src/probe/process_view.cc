#include "probe/process_view.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <optional>

#include "base/files.h"

namespace foreload {
namespace {

constexpr Bytes kMostText = 64_KiB;

Result<std::string> text_of(pid_t process, const std::string& name) {
  return read_whole_file(fmt::format("/proc/{}/{}", process, name), kMostText);
}

// The number behind "Name:" at the beginning of a line.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(std::min(line.find_first_of("0123456789"), line.size()));
    std::uint64_t value = 0;
    const auto [rest, problem] = std::from_chars(line.data(), line.data() + line.size(), value);
    return problem == std::errc() ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Result<MemoryShare> memory_share(pid_t process) {
  FORELOAD_ASSIGN(const std::string text, text_of(process, "smaps_rollup"));
  return parse_memory_share(text);
}

Result<MemoryShare> parse_memory_share(std::string_view rollup) {
  const auto all = number_of(rollup, "Pss");
  const auto anonymous = number_of(rollup, "Pss_Anon");
  const auto files = number_of(rollup, "Pss_File");
  const auto shared = number_of(rollup, "Pss_Shmem");
  if (!all || !anonymous || !files || !shared)
    return Error{Code::kInvalid, "the kernel does not tell shares of memory"};
  return MemoryShare{*all * 1024, *anonymous * 1024, *shared * 1024, *files * 1024};
}

std::map<ino_t, Bytes> memory_files(pid_t process) {
  constexpr Bytes kBlock = 512;  // of stat()
  std::map<ino_t, Bytes> files;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process), failed)) {
    std::error_code gone;
    const std::string name = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat found {};
    if (!name.starts_with("/memfd:") || ::stat(entry.path().c_str(), &found) != 0) continue;
    files[found.st_ino] = static_cast<Bytes>(found.st_blocks) * kBlock;
  }
  return files;
}

Result<Bytes> bytes_read(pid_t process) {
  FORELOAD_ASSIGN(const std::string text, text_of(process, "io"));
  if (const auto bytes = number_of(text, "rchar")) return *bytes;
  return Error{Code::kInvalid, "the kernel does not count what a process reads"};
}

std::vector<pid_t> threads_named(pid_t process, std::string_view prefix) {
  std::vector<pid_t> threads;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), failed)) {
    const std::string id = entry.path().filename().string();
    const auto name = read_whole_file(entry.path().string() + "/comm", kMostText);
    if (name.ok() && name->starts_with(prefix)) threads.push_back(static_cast<pid_t>(std::stol(id)));
  }
  return threads;
}

char thread_state(pid_t process, pid_t thread) {
  const auto stat = text_of(process, fmt::format("task/{}/stat", thread));
  return stat.ok() ? parse_thread_state(*stat) : '\0';
}

// "123 (any name) R …": the name may have brackets, too.
char parse_thread_state(std::string_view stat) {
  const std::size_t end = stat.rfind(") ");
  return end != std::string_view::npos && end + 2 < stat.size() ? stat[end + 2] : '\0';
}

}  // namespace foreload
