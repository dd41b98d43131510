// ArenaShelf: serves other hosts out of the shared arenas of this one. What is at home here and has not been read yet
// is put on the arena's list of wanted samples, for whichever trainer of this host can read it.
#pragma once

#include <atomic>

#include "peers/inventory.h"
#include "peers/peers.h"

namespace foreload {

class ArenaShelf final : public PeerShelf {
 public:
  // It must outlive this.
  explicit ArenaShelf(const Inventory& inventory) : inventory_(inventory) {}
  // Trainers of all hosts begin now, and not at the same moment: those that are first have to wait a little.
  void begin(Time now) { began_ = now.count(); }

  bool knows(const PeerKey& key) const override;
  void expect(const PeerKey& key, std::span<const PeerItem> items) override;
  Taken take(const PeerKey& key, const PeerItem& item) override;

 private:
  std::shared_ptr<ShelvedArena> arena_of(const PeerKey& key) const;
  // Trainers that could read for it.
  bool has_readers(const ShelvedArena& arena, bool wake) const;

  bool is_beginning(const PeerKey& key) const;

  const Inventory& inventory_;
  std::atomic<std::int64_t> began_{0};
};

}  // namespace foreload
