// PrepBoard: where workers find what to prepare: one stream of this process, or all streams of a host. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/event_record.h"
#include "pipeline/ring.h"
#include "prep/chain.h"

namespace foreload {

// What a worker needs to know of a stream.
struct PrepStream {
  Ring& ring;
  const Chain& chain;
  std::array<std::span<const std::byte>, 2> memory;  // where the bytes of samples are: RingWork::memory
  std::uint64_t seed = 0;
  std::uint64_t positions = 0;    // of an epoch; those from here on are padding
  EventRecord* record = nullptr;  // may be null
  std::uint64_t serial = 0;       // of the streams of a board: no two ever have the same
};

struct PrepTask {
  const PrepStream* stream = nullptr;
  RingItem item{};
};

class PrepBoard {
 public:
  virtual ~PrepBoard() = default;

  // The sample that is needed soonest, claimed; nothing when none is ready. Its stream lives until settled().
  virtual std::optional<PrepTask> claim() = 0;
  // The claimed sample is done, or bad, or its batch is published.
  virtual void settled(const PrepTask& task, bool bad) = 0;
  virtual std::uint32_t signal() const = 0;  // read it before claim(), pass it to wait()
  // Blocks until there may be something to claim. False: stopped.
  virtual bool wait(std::uint32_t seen) = 0;
  virtual bool stopped() const = 0;
};

}  // namespace foreload
