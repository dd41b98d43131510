// Ring: the batch slots of one stream, in one region without pointers, private or shared. A slot goes free → open →
// completing → published → free, when every reader has passed it; inside an open slot every sample goes waiting (for
// bytes) → ready → claimed → done, or bad, which the feeder judges. Feeder, workers and readers meet only here: all
// that a worker needs to know of a sample stands in the ring. Batches are published in whatever order they finish and
// taken in order of number. One thread feeds, and one takes for each reader; all else is for any thread. Only the
// wait_* ones block, and stop() ends them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/claim_word.h"
#include "base/region.h"
#include "foreload/batch.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "foreload/types.h"
#include "plan/stream.h"
#include "policy/hold_up.h"
#include "policy/prep_order.h"
#include "tier/peer_crop.h"

namespace foreload {

struct RingOptions {
  unsigned slots = 2;
  std::uint64_t batch = 1;   // samples per slot at most
  Bytes sample_bytes = 0;    // of one prepared sample
  Bytes ragged_element = 0;  // of one element, when samples have lengths of their own
  bool mixes = false;        // samples are mixed with each other
  bool rows = false;         // samples may come with the offsets of their rows

  bool operator==(const RingOptions&) const = default;
};

// One sample to prepare: exclusive to whoever claimed it.
struct RingItem {
  std::uint32_t slot = 0;
  std::uint32_t index = 0;
};

// What is to be prepared: the sample, and where its bytes are.
struct RingWork {
  SampleId id = 0;
  std::int64_t label = kNoLabel;
  std::uint32_t memory = 0;  // which of the regions that feeder and workers both know
  std::uint32_t rows = 0;    // offsets that are known
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t first_row = 0;  // rows first … end-1 are there
  std::uint32_t end_row = ~0u;
  PeerCrop crop{};  // wanted: the bytes are the cut for it
};

// What a worker made of it.
struct Prepared {
  Duration busy{};           // worker time
  bool damaged = false;      // decoded, with warnings
  std::uint64_t length = 0;  // elements, when ragged
  Dimensions dimensions{};
};

// Where workers wait for samples: a counter that only grows, and how many sleep.
struct WorkSignal {
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint32_t> sleepers{0};

  void raise();  // wakes one
};

// What became of a sample that was ready once.
enum class Settled { kNotYet, kDone, kBad };

// Sample bytes by the tier they came from.
struct OriginBytes {
  Bytes memory = 0;
  Bytes disk = 0;
  Bytes peer = 0;
  Bytes source = 0;
  Bytes filled = 0;  // of disk and source: read for a home before anybody needed them

  OriginBytes& operator+=(const OriginBytes& other) {
    memory += other.memory;
    disk += other.disk;
    peer += other.peer;
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
  bool shared = false;  // another job had it made
};

// What a learner got so far, and waited for: for whoever looks at a host.
struct LearnerReport {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  Duration fetch_stall{};
  Duration prep_stall{};
  Bytes memory_bytes = 0;
  Bytes disk_bytes = 0;
  Bytes peer_bytes = 0;
  Bytes source_bytes = 0;
  std::uint64_t replaced = 0;
  std::uint64_t damaged = 0;
  Time since{};             // the first batch
  Time until{};             // the last one
  std::uint64_t reads = 0;  // another job's stream, whose batches it takes; 0: its own
};

class Ring {
 public:
  static constexpr std::size_t kMostRows = 320;    // offsets that a sample may come with
  static constexpr std::size_t kMostReason = 254;  // bytes of a worker's word about a bad sample
  static constexpr unsigned kMostReaders = 64;
  static constexpr unsigned kOwnReader = 0;  // the learner of the process that feeds

  static Bytes region_bytes(const RingOptions& options);
  static Result<std::shared_ptr<Ring>> create(const RingOptions& options);
  // In memory that other processes see too. REQUIRES: of region_bytes(). attach: that another one made a ring of.
  static std::shared_ptr<Ring> create(const RingOptions& options, Region region);
  static std::shared_ptr<Ring> attach(const RingOptions& options, Region region);
  // Who claims here, and where work is announced instead of in the ring; who feeds also knows who is alive. Before
  // anything else.
  void set_member(MemberId self, WorkSignal* signal, std::function<bool(MemberId)> is_alive = nullptr);

  unsigned slots() const { return options_.slots; }
  std::size_t most_rows() const { return options_.rows ? kMostRows : 0; }
  std::span<const std::byte> memory() const { return region_.bytes(); }

  // Readers see batches through this memory: another mapping of the same file, whose pages become this process's own
  // when it writes to them. REQUIRES: of the size of memory().
  void set_view(Region view) { view_ = std::move(view); }

  // Feeding. -----------------------------------------------------------------------------------
  // From batch `number` on, for the own reader, and others that come; there is none from `end` on.
  void begin(std::uint64_t number, std::uint64_t end = ~std::uint64_t{0});
  void end();  // nobody is attached any more
  void beat(Time now);
  // Others who read here are to go on elsewhere, and nobody can attach.
  void feed_only_own();
  std::vector<ReaderAt> readers() const;  // that are attached
  void dismiss(unsigned reader);          // it is to go on elsewhere
  // A slot that is free, or whose batch every reader has passed.
  std::optional<std::uint32_t> free_slot();
  // For the batch, all samples waiting. REQUIRES: the slot is free.
  void open(std::uint32_t slot, const BatchPlan& plan);
  void add_bytes(std::uint32_t slot, const OriginBytes& bytes);
  // The sample's bytes are there. REQUIRES: it is waiting; at most most_rows() offsets.
  void mark_ready(RingItem item, const RingWork& work, std::span<const std::uint32_t> rows, Time now);
  // How many samples of the slot have been settled since it was opened, and how many of them were bad: the first grows
  // when one of these calls would say something new.
  std::uint32_t settled(std::uint32_t slot) const;
  std::uint32_t rejected(std::uint32_t slot) const;
  Settled settled(RingItem item) const;
  bool is_claimed(RingItem item) const;
  Prepared prepared(RingItem item) const;  // REQUIRES: done
  Error reason(RingItem item) const;       // REQUIRES: bad
  // REQUIRES for these: the sample is bad, or waiting. wait_again: for other bytes; `replaced`: another sample's.
  void wait_again(RingItem item, bool replaced);
  // The batch will be delivered as this error. True: it was the batch's last sample; the caller must publish it.
  [[nodiscard]] bool fail(RingItem item, const Error& error);
  // The feeder is short of room: whoever settles a sample from now on is to wake it, once.
  void call_when_settled();
  bool take_call();  // true: wake the feeder
  // A feeder in another process is woken through the ring.
  void wake_feeder();
  std::uint32_t feeder_signal() const;
  void wait_as_feeder(std::uint32_t seen, Time deadline) const;
  // What the dead had claimed is ready again, what they were reading is not read any more, and what they or the stopped
  // had not counted is counted.
  void take_back();
  // The slot's batch will not come out of it: whoever was completing it is dead, or it has been waiting for a worker
  // for longer than `patience` although all bytes were there.
  bool is_stuck(std::uint32_t slot, Time now, Duration patience) const;
  // Nobody can claim of it any more. It is free when those who have claimed are done, or dead. False: the batch has
  // been published meanwhile.
  bool retire(std::uint32_t slot);
  // Takes back the latest batch that is published, that nobody reads, and that is later than `number`. The slot is
  // free.
  std::optional<std::uint32_t> recall_after(std::uint64_t number);

  // Preparing. ---------------------------------------------------------------------------------
  // The ready sample that is needed soonest (policy/prep_order); nothing when none is ready.
  std::optional<RingItem> claim();
  std::optional<std::uint64_t> soonest() const;  // the batch that claim() would turn to
  // Blocks until there may be something to claim, or that time has come. False: stopped.
  bool wait_for_work(std::uint32_t seen, Time until);
  unsigned sleeping_workers() const;
  unsigned published() const;         // batches that are ready for the foremost reader
  std::uint32_t work_signal() const;  // read it before claim(), pass it to wait_for_work()
  BatchPlan plan_of(std::uint32_t slot) const;
  RingWork work(RingItem item) const;
  Position position(RingItem item) const;
  std::span<const std::uint32_t> rows(RingItem item) const;
  std::span<std::byte> tensor(RingItem item) const;
  // REQUIRES for these: claimed by the caller. True: it was the batch's last sample; the slot is the caller's alone,
  // who must publish it.
  [[nodiscard]] bool finish(RingItem item, const Prepared& prepared);
  void reject(RingItem item, const Error& error);  // the feeder decides what becomes of it
  void give_back(RingItem item);                   // somebody else is to prepare it
  // Of a slot whose last sample is done: what the batch stage works on, and its end. `busy`: worker time it took.
  std::span<std::byte> tensors(std::uint32_t slot) const;
  std::span<std::uint64_t> lengths(std::uint32_t slot) const;  // count + 1; element i + 1 is that of sample i
  std::span<Mix> mixes(std::uint32_t slot) const;
  void publish(std::uint32_t slot, Duration busy = {});

  // Reading. -----------------------------------------------------------------------------------
  // A place for a learner of another process, or of another ring; nothing when there are too many.
  std::optional<unsigned> add_reader();
  void remove_reader(unsigned reader);  // REQUIRES: it has released all that it took
  // Takes part from batch `number` on. False: nobody feeds for others here, or the batch has been passed by all, or is
  // further away than the ring is long, unless `far`.
  bool attach(unsigned reader, std::uint64_t number, bool far);
  void detach(unsigned reader);
  bool is_attached(unsigned reader) const;  // and nobody dismissed it
  std::uint64_t opened() const;             // the first batch that has had no slot yet
  std::uint64_t last() const;               // the first batch that will never come
  bool is_fed(Time now) const;              // the feeder lives, and has been at work lately
  // The slot of the batch if it is published, to be read until it is released.
  std::optional<std::uint32_t> take(unsigned reader, std::uint64_t number);
  // The feeder knows meanwhile that this reader waits.
  bool wait_for_batch(unsigned reader, std::uint32_t seen);
  void end_wait(unsigned reader);  // it does not wait any more, although it has taken nothing
  std::uint32_t published_signal() const;
  void nudge_consumer();  // ends the running wait_for_batch; also from a signal handler
  // When the last bytes of the slot's batch arrived; nothing while some are missing.
  std::optional<Time> bytes_complete(std::uint32_t slot) const;
  std::optional<Error> error_of(std::uint32_t slot) const;
  BatchCost cost_of(std::uint32_t slot) const;
  unsigned held(unsigned reader) const;  // slots that it has taken and not released
  void release(unsigned reader, std::uint32_t slot);
  // What the reader holds becomes this process's own memory, and the slots are free for the feeder; forget() is then
  // what release() would have been. REQUIRES: a view; the reader is not attached.
  std::uint64_t keep(unsigned reader);  // slots, one bit each
  void forget(std::uint32_t slot) const;
  void set_pace(unsigned reader, Time last, Duration step);
  LearnerPace pace(unsigned reader) const;
  LearnerPace pace() const;  // of the foremost reader, who will need the next batches first
  void set_report(const LearnerReport& report);
  LearnerReport report() const;                      // not all of one moment
  std::uint64_t prepared_by(unsigned member) const;  // samples of this stream

  std::span<const std::byte> data(std::uint32_t slot) const;
  std::span<const std::uint64_t> offsets(std::uint32_t slot) const;  // empty unless ragged
  std::span<const std::int64_t> labels(std::uint32_t slot) const;
  std::span<const SampleId> ids(std::uint32_t slot) const;
  std::span<const Position> positions(std::uint32_t slot) const;
  std::span<const Mix> mixed(std::uint32_t slot) const;

  // Stopping. ----------------------------------------------------------------------------------
  void stop();  // ends all waits
  bool stopped() const;
  // Waits until nothing is claimed any more, or the deadline. REQUIRES: all slots are retired.
  void wait_for_claims(Time deadline);
  void reset();  // retires all slots, and may wait again. REQUIRES: no feeder.

 private:
  struct Header;
  struct Slot;
  struct Item;
  struct Columns;
  struct Reader;
  struct Needed;

  Ring(Region region, const RingOptions& options);
  static Columns columns(const RingOptions& options);
  Header& header() const;
  Slot& slot(std::uint32_t index) const;
  Item& item(RingItem item) const;
  std::byte* column(std::uint32_t slot, std::size_t offset) const;
  bool done(RingItem item);
  struct Signal;
  bool wait(const Signal& signal, std::uint32_t seen, Time until);

  std::optional<RingItem> claim_of(std::uint32_t slot);
  bool is_alive(MemberId member) const { return !is_alive_ || is_alive_(member); }
  bool is_at_rest(std::uint32_t slot);
  bool recall(std::uint32_t slot);
  void rest(std::uint32_t slot);
  Reader& reader(unsigned index) const;
  Needed needed() const;
  bool is_passed(std::uint32_t slot, const Needed& needed) const;
  bool reclaim(std::uint32_t slot);
  bool is_there(std::uint64_t number, bool far) const;
  bool send_away(unsigned reader);
  void forget_dead_readers();
  const std::byte* seen(std::uint32_t slot, std::size_t column) const;
  void announce_batch();
  std::uint64_t count_of(std::uint32_t slot) const;  // others may have written anything

  Region region_;
  std::optional<Region> view_;
  RingOptions options_;
  std::unique_ptr<const Columns> columns_;
  MemberId self_{};
  WorkSignal* signal_;
  std::function<bool(MemberId)> is_alive_;  // none: this process is alone, or does not feed
};

}  // namespace foreload
