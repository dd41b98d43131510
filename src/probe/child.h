// Child: another program, whose standard input and output are ours. It is waited for when destroyed, after its input
// was closed: so it must be one that ends by itself or with its input. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "foreload/result.h"

namespace foreload {

class Child {
 public:
  // Starts command[0], found as a shell would, with the rest as arguments. kNotFound: there is no such program.
  static Result<Child> start(const std::vector<std::string>& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  // The next line of its output, without its end; shorter when the output ends.
  std::string read_line();
  // Closes its input, reads the rest of its output, of which at most 1 MiB is kept, and waits. Its status, as of
  // wait().
  int finish(std::string& output);

 private:
  Child(pid_t id, Descriptor input, Descriptor output)
      : id_(id), input_(std::move(input)), output_(std::move(output)) {}

  pid_t id_ = -1;  // -1: waited for, or moved from
  Descriptor input_;
  Descriptor output_;
};

// What a program prints. kNotFound as above; kIo: it did not end with 0.
Result<std::string> output_of(const std::vector<std::string>& command);

}  // namespace foreload
