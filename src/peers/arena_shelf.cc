#include "peers/arena_shelf.h"

#include <algorithm>

#include "base/clock.h"

namespace foreload {
namespace {

constexpr Duration kBeginning = std::chrono::seconds(30);

}  // namespace

std::shared_ptr<ShelvedArena> ArenaShelf::arena_of(const PeerKey& key) const {
  const auto lists = inventory_.lists();
  const auto found =
      std::ranges::find(lists->arenas, arena_key(key), [](const auto& arena) { return arena->key(); });
  return found == lists->arenas.end() ? nullptr : *found;
}

bool ArenaShelf::wake_readers(const ShelvedArena& arena) const {
  bool any = false;
  const auto lists = inventory_.lists();
  for (const auto& stream : lists->streams) {
    if (stream->card.homes != arena.id()) continue;
    stream->ring->wake_feeder();
    any = true;
  }
  return any;
}

// Nobody here has a cache yet, but somebody may soon.
bool ArenaShelf::is_beginning() const {
  const Time began{began_.load()};
  return began != Time{} && now() - began < kBeginning && inventory_.lists()->arenas.empty();
}

bool ArenaShelf::knows(const PeerKey& key) const {
  return key.roster != 0 && (arena_of(key) != nullptr || is_beginning());
}

void ArenaShelf::expect(const PeerKey& key, std::span<const PeerItem> items) {
  const auto arena = arena_of(key);
  if (!arena) return;
  bool wanted = false;
  for (const PeerItem& item : items) {
    if (item.id >= arena->samples() || arena->arena().is_resident(item.id)) continue;
    wanted = arena->arena().want(item.id) || wanted;
  }
  if (wanted) (void)wake_readers(*arena);
}

PeerShelf::Taken ArenaShelf::take(const PeerKey& key, const PeerItem& item) {
  const auto arena = arena_of(key);
  if (!arena) return {.kind = is_beginning() ? Taken::Kind::kLater : Taken::Kind::kAbsent};
  if (item.id >= arena->samples()) return {};
  if (auto lease = arena->lease(item.id, item.length)) {
    const auto hash = arena->arena().hash(item.id);
    if (hash) return {.kind = Taken::Kind::kHere, .lease = std::move(*lease), .hash = *hash};
  }
  if (!arena->arena().has_home(item.id)) return {};
  // Wanted again: the list may have been full, or the one who took it has died.
  if (!arena->arena().want(item.id) || !wake_readers(*arena)) return {};
  return {.kind = Taken::Kind::kLater};
}

}  // namespace foreload
