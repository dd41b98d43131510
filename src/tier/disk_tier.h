// DiskTier: a DiskStore and the thread that fills it. Samples are offered with a lease that keeps their bytes until
// they are written: so transit bounds what waits, and a slow disk slows down reading instead of taking memory. Failing
// never harms the run: the tier then only serves what it has.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/thread.h"
#include "foreload/types.h"
#include "tier/arena.h"
#include "tier/disk_store.h"

namespace foreload {

class DiskTier {
 public:
  static Bytes bytes_for(std::uint64_t samples);

  explicit DiskTier(std::unique_ptr<DiskStore> store) : store_(std::move(store)) {}
  ~DiskTier() { close(); }

  DiskStore& store() { return *store_; }
  const DiskStore& store() const { return *store_; }

  // `freed` is called, on the thread, after a lease was dropped; it must not block.
  void start(std::function<void()> freed);
  // Writes what waits, for a second at most, and drops the rest. Nothing is offered afterwards.
  void close() FORELOAD_EXCLUDES(mutex_);
  // From the thread that reads:
  bool wants(SampleId id) const {
    return running_ && store_->writable() && store_->wanted().is_home(id) && !store_->has(id);
  }
  bool is_full() const { return waiting() >= kMostWaiting; }  // wait for `freed`
  // Samples that nobody needs yet are read only while few wait, and none after one found no room.
  bool has_leisure() const { return waiting() < kFewWaiting; }
  bool takes_all() const { return !refused_; }
  bool is_idle() const { return waiting() == 0 && !writing_; }
  void offer(SampleId id, Lease lease) FORELOAD_EXCLUDES(mutex_);

  // What the user has to be told, each cause once. One thread.
  std::optional<std::string> take_warning();

 private:
  struct Item {
    SampleId id = 0;
    Lease lease;
  };
  static constexpr std::size_t kMostWaiting = 1024;
  static constexpr std::size_t kFewWaiting = 32;

  std::size_t waiting() const FORELOAD_EXCLUDES(mutex_);

  void run();
  bool write(const Item& item);
  bool is_over() const FORELOAD_EXCLUDES(mutex_);
  std::optional<Item> take() FORELOAD_EXCLUDES(mutex_);

  std::unique_ptr<DiskStore> store_;
  std::function<void()> freed_;
  bool told_failure_ = false;
  bool told_outdated_ = false;
  bool told_damage_ = false;
  bool running_ = false;
  std::atomic<bool> no_thread_{false};
  std::atomic<bool> refused_{false};  // a sample found no room
  std::atomic<bool> writing_{false};
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Item> waiting_ FORELOAD_GUARDED_BY(mutex_);  // at most kMostWaiting + reads in flight
  bool closing_ FORELOAD_GUARDED_BY(mutex_) = false;
  Time deadline_ FORELOAD_GUARDED_BY(mutex_){};
  std::optional<Thread> thread_;  // last: it uses all of the above
};

}  // namespace foreload
