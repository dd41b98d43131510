#include "peers/arena_shelf.h"

#include <algorithm>

#include "base/clock.h"

namespace foreload {
namespace {

constexpr Duration kBeginning = std::chrono::seconds(30);

}  // namespace

std::shared_ptr<ShelvedArena> ArenaShelf::arena_of(const PeerKey& key) const {
  const auto lists = inventory_.lists();
  const auto found = std::ranges::find(lists->arenas, arena_key(key), [](const auto& arena) { return arena->key(); });
  return found == lists->arenas.end() ? nullptr : *found;
}

std::shared_ptr<ShelvedDisks> ArenaShelf::disks_of(const PeerKey& key) const {
  if (disks_ == nullptr) return nullptr;
  const auto lists = inventory_.lists();
  const auto found = std::ranges::find(lists->disks, disks_key(key), [](const auto& disks) { return disks->key(); });
  return found == lists->disks.end() ? nullptr : *found;
}

bool ArenaShelf::has_readers(const ShelvedArena& arena, bool wake) const {
  bool any = false;
  const auto lists = inventory_.lists();
  for (const auto& stream : lists->streams) {
    if (stream->card.homes != arena.id()) continue;
    if (wake) stream->ring->wake_feeder();
    any = true;
  }
  return any;
}

// Nobody here reads that yet, but somebody may soon.
bool ArenaShelf::is_beginning(const PeerKey& key) const {
  const Time began{began_.load()};
  if (began == Time{} || now() - began >= kBeginning) return false;
  const auto lists = inventory_.lists();
  return std::ranges::none_of(lists->streams, [&](const auto& stream) { return stream->card.peers == key; });
}

bool ArenaShelf::knows(const PeerKey& key) const {
  return key.roster != 0 && (arena_of(key) != nullptr || is_beginning(key));
}

void ArenaShelf::expect(const PeerKey& key, std::span<const PeerItem> items) {
  const auto arena = arena_of(key);
  if (!arena) return;
  const auto disks = disks_of(key);
  bool wanted = false;
  for (const PeerItem& item : items) {
    if (item.id >= arena->samples() || arena->arena().is_resident(item.id)) continue;
    const bool is_known = disks && item.id < disks->board().samples();
    if (is_known && disks->board().find(item.id)) {
      disks_->expect(disks, item);
      continue;
    }
    wanted = (is_known && disks->board().want(item.id, now())) || arena->arena().want(item.id) || wanted;
  }
  if (wanted) (void)has_readers(*arena, true);
}

PeerShelf::Taken ArenaShelf::take(const PeerKey& key, const PeerItem& item) {
  const auto arena = arena_of(key);
  const auto later = [](bool yes) { return Taken{.kind = yes ? Taken::Kind::kLater : Taken::Kind::kAbsent}; };
  if (!arena) return later(is_beginning(key));
  if (item.id >= arena->samples() || item.length == 0) return {};
  if (auto lease = arena->lease(item.id, item.length)) {
    const auto hash = arena->arena().hash(item.id);
    if (hash) return {.kind = Taken::Kind::kHere, .lease = std::move(*lease), .hash = *hash};
  }
  if (Taken taken = take_from_disk(key, item); taken.kind != Taken::Kind::kAbsent) return taken;
  if (!arena->arena().has_home(item.id)) return {};
  // Wanted again: the list may have been full, or the one who took it off has died.
  const bool wake = arena->arena().want(item.id);
  return later(has_readers(*arena, wake) || is_beginning(key));
}

PeerShelf::Taken ArenaShelf::take_from_disk(const PeerKey& key, const PeerItem& item) {
  const auto disks = disks_of(key);
  if (!disks || item.id >= disks->board().samples() || !disks_->fits(item.length)) return {};
  Taken taken = disks_->take(disks, item);
  if (taken.kind == Taken::Kind::kAbsent && disks->board().want(item.id, now())) taken.kind = Taken::Kind::kLater;
  return taken;
}

}  // namespace foreload
