#include "tier/disk_tier.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kClosingTime = 1s;

}  // namespace

Bytes DiskTier::bytes_for(std::uint64_t samples) {
  return DiskTable::bytes_for(samples) + samples / 8 + kMostWaiting * sizeof(Item);
}

void DiskTier::close() {
  {
    MutexLock lock(mutex_);
    closing_ = true;
    deadline_ = now() + kClosingTime;
    changed_.notify_all();
  }
  thread_.reset();
}

void DiskTier::start(std::function<void()> freed) {
  freed_ = std::move(freed);
  auto thread = Thread::start("fl-disk", [this] { run(); });
  if (!thread) {
    no_thread_ = true;
    return;
  }
  thread_.emplace(std::move(*thread));
  running_ = true;
}

std::size_t DiskTier::waiting() const {
  MutexLock lock(mutex_);
  return waiting_.size();
}

void DiskTier::offer(SampleId id, Lease lease) {
  MutexLock lock(mutex_);
  waiting_.push_back({id, std::move(lease)});
  changed_.notify_one();
}

std::optional<DiskTier::Item> DiskTier::take() {
  MutexLock lock(mutex_);
  while (waiting_.empty() && !closing_) changed_.wait(mutex_);
  if (waiting_.empty() || (closing_ && now() >= deadline_)) return std::nullopt;
  Item item = std::move(waiting_.front());
  waiting_.pop_front();
  writing_ = true;
  return item;
}

// An error is remembered by the store.
bool DiskTier::write(const Item& item) {
  for (;;) {
    const auto written = store_->write(item.id, item.lease.bytes());
    if (!written.ok() || *written) return written.ok();
    if (is_over() || !store_->wait_for_room(now() + kClosingTime)) return false;
  }
}

bool DiskTier::is_over() const {
  MutexLock lock(mutex_);
  return closing_ && now() >= deadline_;
}

void DiskTier::run() {
  yield_to_others();
  while (auto item = take()) {
    if (!write(*item)) refused_ = true;
    item.reset();
    writing_ = false;
    freed_();
  }
}

std::optional<std::string> DiskTier::take_warning() {
  const bool failed = no_thread_ || !store_->writable();
  if (failed && !told_failure_) {
    told_failure_ = true;
    return fmt::format("the disk cache takes no more samples: {}. It serves the {} that it has, and the run goes on",
                       store_->failure().value_or("the system allows no more threads"),
                       format_bytes(store_->used_bytes()));
  }
  if (store_->outdated() > 0 && !told_outdated_) {
    told_outdated_ = true;
    return fmt::format(
        "the disk cache {} was filled from other files with the same names and lengths, or from files that were "
        "changed since: {} {} replaced",
        store_->path(), counted(store_->outdated(), "sample"), store_->outdated() == 1 ? "is" : "are");
  }
  if (store_->damaged() > 0 && !told_damage_) {
    told_damage_ = true;
    return fmt::format("the disk cache {} had damaged samples: they are read from the source", store_->path());
  }
  return std::nullopt;
}

}  // namespace foreload
