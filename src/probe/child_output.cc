#include "probe/child_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"

extern char** environ;

namespace foreload {
namespace {

constexpr std::size_t kMostOutput = 1 << 20;

// Until the other end is closed; what is too much is read all the same, or the child would wait.
std::string read_all(int fd) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), std::min(static_cast<std::size_t>(got), kMostOutput - text.size()));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("cannot make a pipe", errno);
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), 1);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return errno_error(fmt::format("cannot start {}", command[0]), failed);
  write_end = Descriptor();
  std::string text = read_all(read_end.get());
  if (const int status = wait_for(child); status != 0) {
    return Error{Code::kIo, fmt::format("{} ended with status {}", fmt::join(command, " "), status)};
  }
  return text;
}

}  // namespace foreload
