// Fetcher: the thread between plan and tiers. It walks the stream ahead of the consumer, asks the tiers for every
// sample in the order of need, opens ring slots as they become free, marks samples ready when their bytes are there and
// decides what becomes of bad ones. Where storage would idle it walks on and fills homes before they are needed. What
// comes from where, how far ahead, how many reads at once and when there is time to fill are the pacer's decisions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/event_record.h"
#include "pipeline/holds.h"
#include "pipeline/rewriter.h"
#include "pipeline/ring.h"
#include "pipeline/work.h"
#include "plan/stream.h"
#include "policy/hold_up.h"
#include "policy/pacing.h"
#include "prep/chain.h"
#include "tier/dimension_table.h"
#include "tier/tier_stack.h"

namespace foreload {

struct FetcherParts {
  const Stream& stream;
  const Source& source;
  TierStack& tiers;
  Ring& ring;
  WorkTable& works;
  Bytes sample_limit;    // longer ones are bad samples
  Bytes longest_sample;  // longer ones do not fit the memory budget
  Bytes hold;            // of transit, for samples whose echo is to come
  EventRecord* record;   // may be null
  const Chain* chain;    // to know crops in advance; null: samples are always read whole
  std::uint64_t seed;
  Filling& filling;
  bool only_fill;  // nobody asks for batches
  OnError on_error;
  Quarantine& quarantine;
  DimensionTable& dimensions;
  Rewriter& rewriter;
  bool shared = false;  // other processes prepare, too
};

class Fetcher {
 public:
  Fetcher(const FetcherParts& parts, const PacerOptions& pacing);
  // What the batches on their way take, beside their bytes.
  static Bytes bytes_ahead(const Pacer& pacer, std::uint64_t batch);

  // The thread's body: fetches from batch `number` on until stop(), then waits for its reads.
  void run(std::uint64_t number);
  void stop();  // any thread

  Pace pace() const { return {Time(since_.load()), Duration(step_.load())}; }  // of the learner; any thread

 private:
  // A batch on its way: bytes may arrive before a slot is free for it.
  struct Ahead {
    BatchPlan plan;
    std::optional<std::uint32_t> slot;
    std::uint64_t delivered = 0;
    std::vector<Work> works;  // by index, until a slot is open
    std::vector<bool> arrived;
    OriginBytes bytes{};
    std::array<Bytes, kOrigins> lacked{};  // not in memory when it came in sight, by where it was
    std::array<Bytes, kOrigins> flying{};  // asked for and not yet here
  };
  struct Waiter {
    std::uint64_t number = 0;
    std::uint32_t index = 0;
    unsigned attempt = 0;
    std::optional<std::uint32_t> slot;  // set for substitutes
  };

  void open_slots(Time now);
  void ask_ahead(Time now);
  bool ask_next(Time now);
  void ask_substitutes(Time now);
  bool ask_substitute(const Waiter& waiter, Time now);
  void ask_completions(Time now);
  void ask_wanted(Time now);
  bool ask_wanted(SampleId id, Time now);
  void ask_elsewhere(Time now);
  bool ask_elsewhere(const Waiter& waiter, SampleId id, bool late, Time now);
  void reap(Time now, bool all);
  void reap(std::uint32_t slot, Time now, bool anyway = false);
  void judge(RingItem item, Work work, const Error& error, Time now);
  void fail(RingItem item, const Error& error, Time now);
  void look_for_stuck(Time now);
  void look_for_hold_up(Time now);
  void do_again(std::uint32_t slot);
  bool redo_next(Time now);
  void prepare_slot(std::uint32_t slot, const BatchPlan& plan, Time now);
  Time next_turn(Time now) const;
  std::optional<PartialRead> part_of(SampleId id, Origin from, const PrepKey& key, Time now);
  std::optional<PartialRead> rows_of(SampleId id, const Box& box) const;
  std::optional<PartialRead> cut_of(SampleId id, const Box& box) const;
  void fill(Time now);
  bool fill_next(Time now);
  bool fill_for_others(Time now);
  bool fill_home(SampleId id, bool far, Time now);
  Need tightest(Origin origin, Time now);
  Bytes lacking(const Ahead& batch, Origin origin) const;
  void look_over(Ahead& batch);
  void serve(FetchClass wanted, Time now);
  void start_reads(Time now);
  void start_reads_of(Origin origin, Time now);
  Origin route(SampleId id, std::uint64_t number, Time now);
  Answer request(const Request& wanted, Time now);
  void enter_block(const BatchPlan& plan);
  void hold(SampleId id, const Lease& lease);
  std::optional<Error> refuse(SampleId id) const;
  void arrive(const Arrival& arrival, Time now);
  void record_read(const Arrival& arrival, Time now);
  void settle(const Waiter& waiter, Work work, Time now);
  void deliver(RingItem item, Work work, Time now);
  Ahead& ahead(std::uint64_t number);
  void account(const Waiter& waiter, const OriginBytes& bytes);
  void record(const Event& event) {
    if (parts_.record != nullptr) parts_.record->append(event);
  }
  // Of a sample of a batch.
  static Event event_of(EventKind kind, Time now, const BatchPlan& plan, std::uint64_t index);

  FetcherParts parts_;
  Pacer pacer_;
  std::optional<CropForesight> foresight_;
  std::deque<Ahead> ahead_;       // consecutive numbers
  std::uint64_t next_open_ = 0;   // the batch that gets the next free slot
  std::uint64_t ask_number_ = 0;  // the sample that is asked for next
  std::uint64_t ask_index_ = 0;
  std::uint64_t fill_number_ = 0;  // the sample that is considered next for its home
  std::uint64_t fill_index_ = 0;
  SampleId fill_id_ = 0;     // the same, of those that other hosts will need
  bool fill_more_ = false;   // there is more to consider at once
  bool fill_later_ = false;  // the learner would miss the time now
  std::vector<Bytes> lacking_;
  std::unordered_map<SampleId, std::vector<Waiter>> waiters_;
  std::vector<Arrival> arrivals_;
  std::array<unsigned, kOrigins> flying_{};  // reads by origin, before the last wait
  std::atomic<bool> stopping_{false};
  bool starving_ = false;            // transit was full
  std::uint64_t at_work_ = 0;        // samples whose bytes came, and that are not settled
  std::atomic<Time::rep> since_{0};  // of the pacer's pace
  std::atomic<Duration::rep> step_{0};
  Holds holds_;
  // What a slot was opened for, and what was seen of its samples. What the ring says of it others may have written.
  struct Watch {
    BatchPlan plan{};
    std::uint32_t settled = 0;
    std::uint32_t rejected = 0;
    bool retired = false;  // its batch is done elsewhere
    unsigned turn = 0;     // how often it was done before
  };
  std::vector<Watch> watches_;  // by slot
  std::vector<Waiter> pending_substitutes_;
  bool substitute_added_ = false;  // since they were asked for
  // Asked for, and on their way through another process.
  struct Elsewhere {
    Waiter waiter;
    SampleId id = 0;
    Time since{};
  };
  std::vector<Elsewhere> elsewhere_;
  struct Wanted {
    SampleId id = 0;
    Time since{};
  };
  std::vector<Wanted> wanted_;  // by other hosts, and not asked for yet
  bool overdue_ = false;        // one of them waits for room: nobody who is needed later takes it
  // A batch whose slot rests, because a worker was stopped or died inside of it: done again in another slot.
  struct Redo {
    BatchPlan plan;
    std::vector<unsigned> attempts;  // which samples: Work::attempt
    std::vector<Work> parts{};       // by index: a part that is still there, and that nobody else can ask for anew
    unsigned turn = 0;
  };
  std::deque<Redo> redos_;  // in order of need
  Time looked_{};           // for stuck slots
  HoldUp hold_up_;
  bool has_company_ = false;  // several readers
  struct Incomplete {
    RingItem item;
    Work work;
  };
  std::vector<Incomplete> pending_completions_;
};

}  // namespace foreload
