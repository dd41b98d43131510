// Background: a process that goes on behind the one that was started. That one waits until the work is under way, so
// that whoever started it knows how it went.
#pragma once

#include "base/files.h"
#include "command.h"

namespace foreload {

class Background {
 public:
  // Forks. REQUIRES: this process has no other threads.
  static Result<Background> begin();

  bool is_front() const { return front_; }
  // In front: until ready(), or the other one has ended. kIo: it has, and has said why.
  Result<Json> wait();
  // Behind: the work is under way.
  void ready();

 private:
  Background(bool front, Descriptor pipe) : front_(front), pipe_(std::move(pipe)) {}
  bool front_;
  Descriptor pipe_;
};

}  // namespace foreload
