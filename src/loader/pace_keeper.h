// PaceKeeper: measures what the consumer does with a batch and what it waited for, and tells the ring, so that workers
// of a host know who will run out first, and people how it goes. The consumer's thread.
#pragma once

#include "loader/accounts.h"
#include "pipeline/ring.h"

namespace foreload {

class PaceKeeper {
 public:
  // The consumer asked for the next batch of the ring at `asked` and got it at `delivered`.
  void taken(Ring& ring, unsigned reader, Time asked, Time delivered) {
    constexpr int kMemory = 8;  // steps over which the pace is averaged
    if (last_ != Time{}) {
      const Duration step = asked - last_;
      step_ = step_ == Duration{} ? step : step_ + (step - step_) / kMemory;
    } else {
      report_.since = asked;
    }
    last_ = report_.until = delivered;
    ring.set_pace(reader, delivered, step_);
  }
  // What came of it, for whoever looks at the learner's own ring. `reads`: see LearnerReport.
  void cost(Ring& own, std::uint64_t reads, std::uint64_t samples, const BatchCost& cost, const Wait& wait) {
    own.set_pace(Ring::kOwnReader, last_, step_);
    report_.reads = reads;
    ++report_.batches;
    report_.samples += samples;
    report_.fetch_stall += wait.fetch;
    report_.prep_stall += wait.prep;
    report_.memory_bytes += cost.bytes.memory;
    report_.disk_bytes += cost.bytes.disk;
    report_.peer_bytes += cost.bytes.peer;
    report_.source_bytes += cost.bytes.source;
    report_.replaced += cost.replaced;
    report_.damaged += cost.damaged;
    own.set_report(report_);
  }

 private:
  Time last_{};
  Duration step_{};
  LearnerReport report_{};
};

}  // namespace foreload
