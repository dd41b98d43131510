// PythonPeer: Pillow and torchvision in a Python process of their own, to be measured beside ours. The process lives as
// long as the object and answers one question after the other; times are its CPU time. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "prep/geometry.h"

namespace foreload {

class PythonPeer {
 public:
  // Starts `interpreter` and gives it the samples. An error when there is no such program or it does not answer.
  static Result<PythonPeer> start(const std::string& interpreter, std::span<const std::vector<std::byte>> samples);
  PythonPeer(PythonPeer&& other) noexcept;
  PythonPeer& operator=(PythonPeer&&) = delete;
  ~PythonPeer();  // ends the process

  // Versions; empty when the package is not there.
  const std::string& pillow() const { return pillow_; }
  const std::string& torchvision() const { return torchvision_; }

  // CPU seconds of resizing one picture of each size to side × side, antialiased. REQUIRES: pillow().
  Result<double> resize(std::span<const Box> boxes, unsigned side);
  // CPU seconds of one epoch of the samples: decode, crop, resize to side × side, flip every other one, to a tensor,
  // normalise. REQUIRES: torchvision().
  Result<double> prepare(std::span<const Box> boxes, unsigned side);

 private:
  PythonPeer(pid_t child, Descriptor socket) : child_(child), socket_(std::move(socket)) {}
  Status send(std::span<const std::byte> bytes);
  Result<std::string> receive_line();
  Result<double> ask(const char* task, std::span<const Box> boxes, unsigned side);

  pid_t child_ = -1;
  Descriptor socket_;
  std::string received_;
  std::string pillow_;
  std::string torchvision_;
};

}  // namespace foreload
