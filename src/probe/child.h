// Child: another program, whose standard input and output are ours. It is waited for when destroyed, after its input
// was closed: so it must be one that ends by itself or with its input, or be ended. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
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

  pid_t id() const { return id_; }  // -1: it was waited for

  // The next line of its output, without its end; shorter when the output ends.
  std::string read_line();
  // Nothing: its output has ended, or the line was not whole by then. What there was of it is lost.
  std::optional<std::string> read_line(Time deadline);
  // False: it does not read any more, or takes nothing now.
  bool write_line(std::string_view line);
  void close_input() { input_ = Descriptor(); }
  // Closes its input, reads the rest of its output, of which at most 1 MiB is kept, and waits. Its status, as of
  // wait().
  int finish(std::string& output);
  // Closes its input and waits; kills it when it has not ended by then.
  void end(Time deadline);

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
