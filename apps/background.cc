#include "background.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace foreload {

Result<Background> Background::begin() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("cannot make a pipe", errno);
  Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno_error("cannot start a process in the background", errno);
  const bool front = child != 0;
  return Background(front, std::move(front ? read_end : write_end));
}

Result<Json> Background::wait() {
  char word = 0;
  ssize_t got = 0;
  do {
    got = ::read(pipe_.get(), &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1) return Json::object();
  return Error{Code::kIo, "the agent has ended"};
}

void Background::ready() {
  const char word = 1;
  (void)!::write(pipe_.get(), &word, 1);
  pipe_ = Descriptor();
}

}  // namespace foreload
