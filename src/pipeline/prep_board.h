// PrepBoard: where workers find what to prepare: one stream of this process, or all streams of a host. Any thread.
#pragma once

#include <array>
#include <atomic>
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
  std::uint64_t positions = 0;             // of an epoch; those from here on are padding
  EventRecord* record = nullptr;           // may be null
  std::uint64_t serial = 0;                // of the streams of a board: no two ever have the same
  std::atomic<bool>* too_large = nullptr;  // of another process, which may have the memory that is not here
};

struct PrepTask {
  const PrepStream* stream = nullptr;
  RingItem item{};
};

class PrepBoard {
 public:
  virtual ~PrepBoard() = default;

  // For the worker of that number, from 0 on: the sample that is needed soonest, claimed; nothing when none is ready.
  // Its stream lives until settled().
  virtual std::optional<PrepTask> claim(unsigned worker) = 0;
  // What was claimed is done, or bad; if it was the last of its batch, that is published.
  virtual void settled(unsigned worker, const PrepTask& task, bool bad) = 0;
  virtual std::uint32_t signal() const = 0;  // read it before claim(), pass it to wait()
  // Blocks until there may be something to claim, or that time has come. False: stopped.
  virtual bool wait(unsigned worker, std::uint32_t seen, Time until) = 0;
  virtual bool stopped() const = 0;
};

}  // namespace foreload
