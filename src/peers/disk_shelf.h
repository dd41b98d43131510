// DiskShelf: reads samples out of the disk caches of this host's learners, for other hosts. Its threads wait for the
// disks, so that nobody who serves does. What was read, and has its hash, waits for a moment to be taken. Memory is
// bounded: what finds no room is read when something else was sent; what is longer than all of it never is. Any thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "peers/inventory.h"
#include "peers/peers.h"

namespace foreload {

class DiskShelf {
 public:
  static Result<std::unique_ptr<DiskShelf>> open(Bytes room);
  ~DiskShelf();

  // Reading begins now, if there is room. REQUIRES, in both: item.id < disks->board().samples().
  void expect(const std::shared_ptr<ShelvedDisks>& disks, const PeerItem& item) FORELOAD_EXCLUDES(mutex_);
  bool fits(Bytes length) const { return length <= most_; }  // otherwise it is never read
  // kLater: it is being read, or waits for room. kAbsent: no disk has it, or other bytes, or it never fits.
  PeerShelf::Taken take(const std::shared_ptr<ShelvedDisks>& disks, const PeerItem& item) FORELOAD_EXCLUDES(mutex_);

 private:
  class Room;
  class HeldBytes;
  using Name = std::pair<ObjectId, SampleId>;
  struct Reading {
    std::shared_ptr<ShelvedDisks> disks;
    SampleId id = 0;
    DiskBoard::Place place;
    std::unique_ptr<HeldBytes> bytes;
    Time ended{};  // 0: not yet
    bool is_right = false;
  };

  explicit DiskShelf(Bytes room);
  void begin(const std::shared_ptr<ShelvedDisks>& disks, const PeerItem& item, Time now) FORELOAD_REQUIRES(mutex_);
  void drop_old(Time now) FORELOAD_REQUIRES(mutex_);
  Reading* next() FORELOAD_EXCLUDES(mutex_);  // stays until it has ended; null: this ends
  void run() FORELOAD_EXCLUDES(mutex_);
  static bool read(ShelvedDisks& disks, SampleId id, const DiskBoard::Place& place, std::span<std::byte> into);

  const Bytes most_;
  std::shared_ptr<Room> room_;
  Mutex mutex_;
  CondVar changed_;
  std::map<Name, Reading> readings_ FORELOAD_GUARDED_BY(mutex_);
  std::deque<Name> waiting_ FORELOAD_GUARDED_BY(mutex_);  // of these
  Time looked_ FORELOAD_GUARDED_BY(mutex_){};             // for old ones
  bool stopping_ FORELOAD_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

}  // namespace foreload
