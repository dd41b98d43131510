// What others may know of a learner.
#include "pipeline/ring.h"
#include "pipeline/ring_layout.h"

namespace foreload {

void Ring::set_report(const LearnerReport& report) {
  const std::array<std::uint64_t, 13> values{report.batches,
                                             report.samples,
                                             static_cast<std::uint64_t>(report.fetch_stall.count()),
                                             static_cast<std::uint64_t>(report.prep_stall.count()),
                                             report.memory_bytes,
                                             report.disk_bytes,
                                             report.source_bytes,
                                             report.replaced,
                                             report.damaged,
                                             static_cast<std::uint64_t>(report.since.count()),
                                             static_cast<std::uint64_t>(report.until.count()),
                                             report.reads,
                                             report.peer_bytes};
  for (std::size_t i = 0; i < values.size(); ++i) header().report[i].store(values[i], std::memory_order_relaxed);
}

LearnerReport Ring::report() const {
  const auto value = [this](std::size_t i) { return header().report[i].load(std::memory_order_relaxed); };
  const auto time = [&](std::size_t i) { return static_cast<std::int64_t>(value(i)); };
  return {.batches = value(0),
          .samples = value(1),
          .fetch_stall = Duration(time(2)),
          .prep_stall = Duration(time(3)),
          .memory_bytes = value(4),
          .disk_bytes = value(5),
          .peer_bytes = value(12),
          .source_bytes = value(6),
          .replaced = value(7),
          .damaged = value(8),
          .since = Time(time(9)),
          .until = Time(time(10)),
          .reads = value(11)};
}

std::uint64_t Ring::prepared_by(unsigned member) const {
  return header().prepared_by[member % header().prepared_by.size()].load(std::memory_order_relaxed);
}

}  // namespace foreload
