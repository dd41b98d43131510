// Preparer: the worker threads. Each claims the ready sample that is needed soonest, runs the chain straight into its
// place in the batch, and says how it went. Workers sleep while there is nothing to do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/event_record.h"
#include "foreload/loader.h"
#include "pipeline/fetcher.h"
#include "pipeline/rewriter.h"
#include "pipeline/ring.h"
#include "pipeline/scratch_pool.h"
#include "prep/chain.h"

namespace foreload {

struct PreparerParts {
  const Chain& chain;
  Ring& ring;
  std::span<const std::byte> memory;  // where the bytes of samples are
  ScratchPool& scratch;
  Fetcher& fetcher;
  Rewriter& rewriter;
  Rewrite rewrite;
  Epoch epochs;             // 0: not known
  std::uint64_t positions;  // of an epoch; those from here on are padding
  std::uint64_t seed;
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
  bool rewrite_one(Tools& tools, bool idle);
  Status transform(ChainRunner& runner, const RingWork& work, RingItem item);
  void complete(std::uint32_t slot, std::uint16_t worker);
  void record_published(const BatchPlan& plan, std::uint32_t slot, std::uint16_t worker);
  void record(EventKind kind, RingItem item, std::uint16_t worker, std::uint64_t a, std::uint64_t b);

  PreparerParts parts_;
};

}  // namespace foreload
