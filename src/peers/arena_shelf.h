// ArenaShelf: serves other hosts out of the shared arenas of this one, and out of the disks of its learners. What is at
// home here and has not been read yet is put on a list of wanted samples: the arena's, for whichever trainer of this
// host can read it, or that of the learner on whose disk it is at home.
#pragma once

#include <atomic>

#include "peers/disk_shelf.h"
#include "peers/inventory.h"
#include "peers/peers.h"

namespace foreload {

class ArenaShelf final : public PeerShelf {
 public:
  // Both must outlive this. `disks` may be null: then no disk is read.
  explicit ArenaShelf(const Inventory& inventory, DiskShelf* disks = nullptr) : inventory_(inventory), disks_(disks) {}
  // Trainers of all hosts begin now, and not at the same moment: those that are first have to wait a little.
  void begin(Time now) { began_ = now.count(); }

  bool knows(const PeerKey& key) const override;
  void expect(const PeerKey& key, std::span<const PeerItem> items) override;
  Taken take(const PeerKey& key, const PeerItem& item) override;

 private:
  std::shared_ptr<ShelvedArena> arena_of(const PeerKey& key) const;
  std::shared_ptr<ShelvedDisks> disks_of(const PeerKey& key) const;
  // Trainers that could read for it.
  bool has_readers(const ShelvedArena& arena, bool wake) const;
  Taken take_from_disk(const PeerKey& key, const PeerItem& item);

  bool is_beginning(const PeerKey& key) const;

  const Inventory& inventory_;
  DiskShelf* disks_;
  std::atomic<std::int64_t> began_{0};
};

}  // namespace foreload
