#include "probe/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/local_socket.h"

extern char** environ;

namespace foreload {
namespace {

constexpr std::size_t kMostOutput = 1 << 20;
constexpr std::size_t kLongestLine = 4096;
constexpr Duration kLook = std::chrono::milliseconds(2);

ssize_t read_some(int fd, char* into, std::size_t size) {
  for (;;) {
    const ssize_t got = ::read(fd, into, size);
    if (got >= 0 || errno != EINTR) return got;
  }
}

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("cannot make a pipe", errno);
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// The other end of an input is a socket: writing to a program that has ended is an error then, and no signal.
Result<Pipe> make_input() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("cannot make sockets", errno);
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& command) {
  FORELOAD_ASSIGN(Pipe input, make_input());
  FORELOAD_ASSIGN(Pipe output, make_pipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.read_end.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, output.write_end.get(), 1);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t id = -1;
  const int failed = ::posix_spawnp(&id, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return errno_error(fmt::format("cannot start {}", command[0]), failed);
  return Child(id, std::move(input.write_end), std::move(output.read_end));
}

Child::Child(Child&& other) noexcept
    : id_(std::exchange(other.id_, -1)), input_(std::move(other.input_)), output_(std::move(other.output_)) {}

Child::~Child() {
  std::string rest;
  (void)finish(rest);
}

std::string Child::read_line() {
  std::string line;
  char letter = 0;
  while (line.size() < kLongestLine && read_some(output_.get(), &letter, 1) == 1 && letter != '\n') line += letter;
  return line;
}

std::optional<std::string> Child::read_line(Time deadline) {
  std::string line;
  while (line.size() < kLongestLine) {
    wait_readable(std::array{output_.get()}, deadline);
    char letter = 0;
    if (now() >= deadline || read_some(output_.get(), &letter, 1) != 1) return std::nullopt;
    if (letter == '\n') return line;
    line += letter;
  }
  return std::nullopt;
}

bool Child::write_line(std::string_view line) {
  const std::string text = fmt::format("{}\n", line);
  const ssize_t sent = ::send(input_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(text.size());
}

void Child::end(Time deadline) {
  if (id_ < 0) return;
  close_input();
  while (::waitpid(id_, nullptr, WNOHANG) == 0) {
    if (now() >= deadline) ::kill(id_, SIGKILL);
    std::this_thread::sleep_for(kLook);
  }
  id_ = -1;
}

int Child::finish(std::string& output) {
  if (id_ < 0) return 0;
  close_input();
  std::vector<char> buffer(1 << 16);
  for (ssize_t got = 1; got > 0;) {  // what is too much is read all the same, or the child would wait
    got = read_some(output_.get(), buffer.data(), buffer.size());
    output.append(buffer.data(), std::min(static_cast<std::size_t>(std::max<ssize_t>(got, 0)),
                                          kMostOutput - std::min(kMostOutput, output.size())));
  }
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = -1;
  return status;
}

Result<std::string> output_of(const std::vector<std::string>& command) {
  FORELOAD_ASSIGN(Child child, Child::start(command));
  std::string text;
  if (const int status = child.finish(text); status != 0) {
    return Error{Code::kIo, fmt::format("{} ended with status {}", fmt::join(command, " "), status)};
  }
  return text;
}

}  // namespace foreload
