#include "loader/accounts.h"

#include <algorithm>

namespace foreload {
namespace {

constexpr std::size_t kKeptEpochs = 1025;

}  // namespace

Wait split_wait(Time start, Time end, Time bytes_complete) {
  const Time fetched = std::clamp(bytes_complete, start, end);
  return {.fetch = fetched - start, .prep = end - fetched};
}

void Accounts::begin_epoch(Epoch epoch, Time now) {
  MutexLock lock(mutex_);
  if (epochs_.size() >= kKeptEpochs) epochs_.pop_front();
  epochs_.push_back({.epoch = epoch});
  started_ = now;
  running_ = true;
}

void Accounts::add_batch(std::uint64_t samples, std::span<const SampleId> padded, const BatchCost& cost,
                         const Wait& wait) {
  MutexLock lock(mutex_);
  EpochStats& epoch = epochs_.back();
  epoch.samples += samples;
  epoch.padded.insert(epoch.padded.end(), padded.begin(), padded.end());
  ++epoch.batches;
  epoch.shared_batches += cost.shared ? 1 : 0;
  epoch.replaced += cost.replaced;
  epoch.damaged += cost.damaged;
  epoch.memory_bytes += cost.bytes.memory;
  epoch.disk_bytes += cost.bytes.disk;
  epoch.peer_bytes += cost.bytes.peer;
  epoch.source_bytes += cost.bytes.source;
  epoch.filled_bytes += cost.bytes.filled;
  epoch.prep_busy += cost.prep_busy;
  epoch.fetch_stall += wait.fetch;
  epoch.prep_stall += wait.prep;
}

void Accounts::end_epoch(Time now) {
  MutexLock lock(mutex_);
  if (!running_) return;
  epochs_.back().wall = now - started_;
  running_ = false;
}

std::vector<EpochStats> Accounts::list(Time now) const {
  MutexLock lock(mutex_);
  std::vector<EpochStats> list(epochs_.begin(), epochs_.end());
  if (running_) list.back().wall = now - started_;
  return list;
}

}  // namespace foreload
