// `foreload agent --with-members` returns when the agent behind it is at work, so there is a child to wait for, and
// none is left behind. The program is this one; or that of the same installation, PREFIX/bin for a library in
// PREFIX/lib or a Python module in PREFIX/lib/python3.11/dist-packages/foreload; or the first in PATH. FORELOAD_PROGRAM
// names another.
#include "loader/agent_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "loader/setup.h"

extern char** environ;

namespace foreload {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2;       // code of the program: an option is wrong
constexpr int kMostLevels = 5;  // from a Python module's folder to PREFIX

bool is_program(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path, none) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> find_installed() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&start_agent), &self) == 0 || self.dli_fname == nullptr) return {};
  std::error_code failed;
  fs::path folder = fs::canonical(self.dli_fname, failed).parent_path();
  for (int level = 0; !failed && level < kMostLevels; ++level, folder = folder.parent_path()) {
    if (is_program(folder / "bin/foreload")) return folder / "bin/foreload";
  }
  return {};
}

std::optional<std::string> find_in_path() {
  const char* folders = std::getenv("PATH");
  std::istringstream list(folders != nullptr ? folders : "");
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty() && is_program(folder + "/foreload")) return folder + "/foreload";
  }
  return {};
}

std::optional<std::string> find_program() {
  if (const char* named = std::getenv("FORELOAD_PROGRAM")) return named;
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  if (!none && self.filename() == "foreload") return self.string();
  auto installed = find_installed();
  return installed ? installed : find_in_path();
}

struct Ended {
  int code = 0;
  std::string said{};  // on standard output: why it failed
};

std::string said_so_far(const Descriptor& pipe) {
  std::array<char, PIPE_BUF> text{};
  const ssize_t length = ::read(pipe.get(), text.data(), text.size());
  return std::string(trimmed({text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))}));
}

// Its own session: what ends the trainers from a terminal must not end it before they are gone. No signal is blocked,
// whatever the thread that opens a loader does.
Result<Ended> run_to_end(const std::string& program, std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return errno_error("cannot make a pipe", errno);
  const Descriptor from(ends[0]);
  const Descriptor to(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, to.get(), 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, program.c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error{Code::kInvalid, fmt::format("cannot start {} as this host's agent: {}", program,
                                             std::system_category().message(failed))};
  }
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  // Who ignores SIGCHLD is not told how it went: then what it said tells.
  if (ended < 0) {
    const std::string said = said_so_far(from);
    return Ended{.code = said.empty() ? 0 : 1, .said = said};
  }
  return Ended{.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .said = said_so_far(from)};
}

}  // namespace

Status start_agent(const LoaderOptions& options) {
  const auto program = find_program();
  if (!program) {
    return Error{
        Code::kInvalid,
        "peers need an agent on this host, and the program foreload that would be it was installed neither with "
        "this library nor anywhere in PATH: install it, or start `foreload agent` with the same --peers yourself"};
  }
  std::vector<std::string> arguments{*program,     "agent",   "--with-members", "--host",
                                     options.host, "--peers", options.peers};
  const bool launcher_knows = options.peers == "auto" && options.local_world == 0;
  if (!launcher_knows) arguments.insert(arguments.end(), {"--learners", std::to_string(learners_here(options))});
  if (!options.disk.empty()) {
    std::error_code none;
    arguments.insert(arguments.end(), {"--disk", fs::absolute(options.disk, none).string()});
    if (options.disk_bytes != 0) arguments.insert(arguments.end(), {"--disk-size", std::to_string(options.disk_bytes)});
  }
  if (!options.credentials.empty()) arguments.insert(arguments.end(), {"--credentials", options.credentials});
  FORELOAD_ASSIGN(const Ended ended, run_to_end(*program, std::move(arguments)));
  if (ended.code == 0) return {};
  return Error{ended.code == kUsage ? Code::kInvalid : Code::kIo,
               fmt::format("the agent that this host needs for its peers ({} agent) can not begin: {}", *program,
                           ended.said.empty() ? "see what it said on standard error" : ended.said)};
}

}  // namespace foreload
