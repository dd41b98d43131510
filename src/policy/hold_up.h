// HoldUp: when the readers of one stream go on without the one that is furthest behind. Readers wait for each other
// only when the ring has no slot left: the foremost could go on and has to wait for the hindmost to pass a batch. That
// is cheaper than preparing everything twice, up to a share of the foremost's time. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "foreload/types.h"

namespace foreload {

struct ReaderAt {
  unsigned reader = 0;
  std::uint64_t next = 0;  // the batch that it takes next
  bool waiting = false;    // for it
  Duration step{};         // what it does with a batch
};

class HoldUp {
 public:
  static constexpr double kMostShare = 0.25;  // of the foremost's time, lately
  static constexpr Duration kLeastMemory = std::chrono::seconds(10);
  static constexpr int kSteps = 8;  // of the foremost, over which "lately" goes at least

  // At every look. `opened`: the first batch that has no slot; `full`: and there is none for it. The reader that the
  // others are to go on without; of several at the same batch the one with the lowest number.
  std::optional<unsigned> look(std::span<const ReaderAt> readers, std::uint64_t opened, bool full, Time now);

 private:
  Time last_{};
  bool held_up_ = false;  // at the last look
  double share_ = 0;      // of the time
};

}  // namespace foreload
