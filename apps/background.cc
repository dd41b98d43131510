#include "background.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>

namespace foreload {
namespace {

// Whoever waits for the one in front may read its standard output to the end.
void leave_output() {
  const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (nowhere.valid()) (void)::dup2(nowhere.get(), STDOUT_FILENO);
}

}  // namespace

Result<Background> Background::begin() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("cannot make a pipe", errno);
  Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno_error("cannot start a process in the background", errno);
  const bool front = child != 0;
  if (!front) leave_output();
  return Background(front, std::move(front ? read_end : write_end));
}

// A first byte of 0 is ready(); another one is an error's code, one more than that, and its message follows.
Result<Json> Background::wait() {
  std::string told;
  std::array<char, PIPE_BUF> part{};
  for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);) {
    got = ::read(pipe_.get(), part.data(), part.size());
    if (got > 0) told.append(part.data(), static_cast<std::size_t>(got));
  }
  if (told.empty()) return Error{Code::kIo, "the agent has ended"};
  if (told[0] == 0) return Json::object();
  return Error{static_cast<Code>(told[0] - 1), told.substr(1)};
}

void Background::tell(const std::string& text) {
  (void)!::write(pipe_.get(), text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
  pipe_ = Descriptor();
}

void Background::ready() {
  tell(std::string(1, 0));
}

void Background::fail(const Error& error) {
  tell(static_cast<char>(static_cast<int>(error.code) + 1) + error.message);
}

}  // namespace foreload
