// Preparer: the worker threads. Each claims the ready sample that is needed soonest, runs the chain straight into its
// place in the batch, and drops its bytes. Workers sleep while there is nothing to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/event_record.h"
#include "foreload/loader.h"
#include "pipeline/fetcher.h"
#include "pipeline/rewriter.h"
#include "pipeline/ring.h"
#include "pipeline/scratch_pool.h"
#include "pipeline/work.h"
#include "policy/rewriting.h"
#include "prep/chain.h"
#include "tier/dimension_table.h"

namespace foreload {

struct PreparerParts {
  const Source& source;
  const Chain& chain;
  Ring& ring;
  WorkTable& works;
  ScratchPool& scratch;
  Quarantine& quarantine;
  Fetcher& fetcher;
  DimensionTable& dimensions;
  Rewriter& rewriter;
  Rewrite rewrite;
  unsigned workers;
  Epoch epochs;             // 0: not known
  std::uint64_t positions;  // of an epoch; those from here on are padding
  std::uint64_t seed;
  OnError on_error;
  EventRecord* record;  // may be null
};

class Preparer {
 public:
  explicit Preparer(const PreparerParts& parts) : parts_(parts) {}

  // A worker thread's body; returns when the ring is stopped.
  void run(std::uint16_t worker);

 private:
  // What one worker thread owns.
  struct Tools {
    ChainRunner runner;
    std::optional<JpegRewriter> rewriter{};  // made when it is needed
    Epoch epoch = 0;                         // of the last sample
  };
  void prepare(Tools& tools, RingItem item, std::uint16_t worker);
  // What became of a chance to do what nobody waits for.
  enum class Spare { kUsed, kNothingToDo, kNoTime };
  Spare rewrite_one(Tools& tools, bool idle);
  RewriteChance chance(const Tools& tools, bool idle) const;
  Status transform(ChainRunner& runner, const Work& work, RingItem item);
  void complete(std::uint32_t slot, std::uint16_t worker);
  [[nodiscard]] bool reject(RingItem item, const Work& work, const Error& error);
  void record_published(const BatchPlan& plan, std::uint32_t slot, std::uint16_t worker);
  void record(EventKind kind, RingItem item, std::uint16_t worker, std::uint64_t a, std::uint64_t b);

  PreparerParts parts_;
  std::atomic<unsigned> rewriting_{0};          // workers
  std::atomic<Duration::rep> rewrite_cost_{0};  // on average; 0: not known
};

}  // namespace foreload
