// `foreload agent --with-members` returns when the agent behind it is at work, so there is a child to wait for, and
// none is left behind. The program is looked for beside this one, then in PATH; FORELOAD_PROGRAM names another.
#include "loader/agent_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "loader/setup.h"

extern char** environ;

namespace foreload {
namespace {

std::optional<std::string> find_program() {
  if (const char* named = std::getenv("FORELOAD_PROGRAM")) return named;
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none && self.filename() == "foreload") return self.string();
  const char* folders = std::getenv("PATH");
  std::istringstream list(folders != nullptr ? folders : "");
  for (std::string folder; std::getline(list, folder, ':');) {
    const std::string path = folder + "/foreload";
    if (!folder.empty() && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

// Its own session: what ends the trainers from a terminal must not end it before they are gone.
Result<int> run_to_end(const std::string& program, std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, program.c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return errno_error(fmt::format("cannot start {} as this host's agent", program), failed);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Status start_agent(const LoaderOptions& options) {
  const auto program = find_program();
  if (!program) {
    return Error{Code::kNotFound,
                 "peers need an agent on this host, and the program foreload that would be it is not in PATH: start "
                 "`foreload agent` yourself, or name the program in FORELOAD_PROGRAM"};
  }
  std::vector<std::string> arguments{*program,
                                     "agent",
                                     "--with-members",
                                     "--host",
                                     options.host,
                                     "--learners",
                                     std::to_string(learners_here(options)),
                                     "--peers",
                                     options.peers};
  if (!options.credentials.empty()) arguments.insert(arguments.end(), {"--credentials", options.credentials});
  FORELOAD_ASSIGN(const int code, run_to_end(*program, std::move(arguments)));
  if (code == 0) return {};
  return Error{Code::kIo, fmt::format("the agent that this host needs for its peers ({} agent) failed: see what it "
                                      "said on standard error",
                                      *program)};
}

}  // namespace foreload
