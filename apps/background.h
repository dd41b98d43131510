// Background: a process that goes on behind the one that was started. That one waits until the work is under way, so
// that whoever started it knows how it went. The one behind has no standard output.
#pragma once

#include <string>

#include "base/files.h"
#include "command.h"

namespace foreload {

class Background {
 public:
  // Forks. REQUIRES: this process has no other threads.
  static Result<Background> begin();

  bool is_front() const { return front_; }
  // In front: until ready(), or the error that fail() told. kIo: the other one has ended without a word.
  Result<Json> wait();
  // Behind, one of them, once: the work is under way; it can not begin.
  void ready();
  void fail(const Error& error);

 private:
  Background(bool front, Descriptor pipe) : front_(front), pipe_(std::move(pipe)) {}
  void tell(const std::string& text);
  bool front_;
  Descriptor pipe_;
};

}  // namespace foreload
