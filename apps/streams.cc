#include "streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

namespace foreload {

void print_out(std::string_view text) {
  // A short count sets the stream's error flag, which all_printed() looks at.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
  static_cast<void>(std::fflush(stdout));  // whoever follows a log sees lines as they come, also when we are killed
}

bool all_printed() {
  std::cout.flush();  // of CLI11
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
}

void print_err(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. If there is no /dev/null, the worst is what it was before.
    if (open("/dev/null", O_RDONLY) < 0) return;
  }
}

}  // namespace foreload
