// Ring: the batch slots of one stream, in one region without pointers. A slot goes free → open → published →
// leased → free; inside an open slot every sample goes waiting (for bytes) → ready → claimed → done. Fetcher, workers
// and consumer meet only here. Batches are published in whatever order they finish and leased in order of number.
// One thread opens slots and one takes batches; all else is for any thread. Only the wait_* ones block, and stop() ends
// them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/claim_word.h"
#include "base/mutex.h"
#include "base/region.h"
#include "foreload/batch.h"
#include "foreload/result.h"
#include "foreload/types.h"
#include "plan/stream.h"

namespace foreload {

struct RingOptions {
  unsigned slots = 2;
  std::uint64_t batch = 1;   // samples per slot at most
  Bytes sample_bytes = 0;    // of one prepared sample
  Bytes ragged_element = 0;  // of one element, when samples have lengths of their own
  bool mixes = false;        // samples are mixed with each other
};

// One sample to prepare: exclusive to whoever claimed it.
struct RingItem {
  std::uint32_t slot = 0;
  std::uint32_t index = 0;
};

// One prepared sample.
struct Prepared {
  SampleId id = 0;
  std::int64_t label = kNoLabel;
  Duration busy{};           // worker time
  bool damaged = false;      // decoded, with warnings
  std::uint64_t length = 0;  // elements, when ragged
};

// Sample bytes by the tier they came from.
struct OriginBytes {
  Bytes memory = 0;
  Bytes disk = 0;
  Bytes source = 0;
  Bytes filled = 0;  // of disk and source: read for a home before anybody needed them

  OriginBytes& operator+=(const OriginBytes& other) {
    memory += other.memory;
    disk += other.disk;
    source += other.source;
    filled += other.filled;
    return *this;
  }
};

// What a batch cost; read when it is leased.
struct BatchCost {
  OriginBytes bytes{};
  Duration prep_busy{};
  std::uint64_t replaced = 0;
  std::uint64_t damaged = 0;
};

class Ring {
 public:
  static Bytes region_bytes(const RingOptions& options);
  static Result<std::shared_ptr<Ring>> create(const RingOptions& options);

  unsigned slots() const { return options_.slots; }
  std::span<const std::byte> memory() const { return region_.bytes(); }

  // Feeding. -----------------------------------------------------------------------------------
  // Takes a free slot for the batch, all samples waiting; nothing when no slot is free.
  std::optional<std::uint32_t> open(const BatchPlan& plan);
  void add_bytes(std::uint32_t slot, const OriginBytes& bytes);
  // The sample's bytes are there. REQUIRES: it is waiting.
  void mark_ready(RingItem item, Time now);

  // Preparing. ---------------------------------------------------------------------------------
  // The ready sample that is needed soonest (policy/prep_order); nothing when none is ready.
  std::optional<RingItem> claim();
  // Blocks until there may be something to claim, or that time has come. False: stopped.
  bool wait_for_work(std::uint32_t seen, Time until);
  unsigned sleeping_workers() const;
  unsigned published() const;         // batches that are ready and that nobody has taken
  std::uint32_t work_signal() const;  // read it before claim(), pass it to wait_for_work()
  BatchPlan plan_of(std::uint32_t slot) const;
  std::span<std::byte> tensor(RingItem item) const;
  // REQUIRES for these: claimed by the caller. True: it was the batch's last sample; the slot is the caller's alone,
  // who must publish it.
  [[nodiscard]] bool finish(RingItem item, const Prepared& prepared);
  [[nodiscard]] bool fail(RingItem item, const Error& error);  // the batch will be delivered as this error
  void give_back(RingItem item);                               // its bytes are bad: waiting again, for a substitute's
  // Of a slot whose last sample is done: what the batch stage works on, and its end. `busy`: worker time it took.
  std::span<std::byte> tensors(std::uint32_t slot) const;
  std::span<std::uint64_t> lengths(std::uint32_t slot) const;  // count + 1; element i + 1 is that of sample i
  std::span<Mix> mixes(std::uint32_t slot) const;
  void publish(std::uint32_t slot, Duration busy = {});

  // Consuming. ---------------------------------------------------------------------------------
  // The slot of the batch if it is published; it is leased by that.
  std::optional<std::uint32_t> take(std::uint64_t number);
  bool wait_for_batch(std::uint32_t seen);
  std::uint32_t published_signal() const;
  void nudge_consumer();  // ends the running wait_for_batch; also from a signal handler
  // When the last bytes of the slot's batch arrived; nothing while some are missing.
  std::optional<Time> bytes_complete(std::uint32_t slot) const;
  std::optional<Error> error_of(std::uint32_t slot) const;
  BatchCost cost_of(std::uint32_t slot) const;
  unsigned leased() const;
  void release(std::uint32_t slot);

  std::span<const std::byte> data(std::uint32_t slot) const;
  std::span<const std::uint64_t> offsets(std::uint32_t slot) const;  // empty unless ragged
  std::span<const std::int64_t> labels(std::uint32_t slot) const;
  std::span<const SampleId> ids(std::uint32_t slot) const;
  std::span<const Position> positions(std::uint32_t slot) const;

  // Stopping. ----------------------------------------------------------------------------------
  void stop();  // ends all waits
  bool stopped() const;
  void reset();  // frees all slots that are not leased, and may wait again. REQUIRES: no fetcher, no worker.

 private:
  struct Header;
  struct Slot;
  struct Offsets;

  Ring(Region region, const RingOptions& options);
  static Offsets offsets(const RingOptions& options);
  Header& header() const;
  Slot& slot(std::uint32_t index) const;
  std::byte* column(std::uint32_t slot, std::size_t offset) const;
  std::atomic<std::uint64_t>& item(RingItem item) const;
  bool done(RingItem item);
  struct Signal;
  bool wait(const Signal& signal, std::uint32_t seen, Time until);
  unsigned count(std::uint8_t phase) const;  // of slots

  Region region_;
  RingOptions options_;
  std::unique_ptr<const Offsets> offsets_;
  mutable Mutex errors_;  // guards the error text of all slots
};

}  // namespace foreload
