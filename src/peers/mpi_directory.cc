#include "peers/mpi_directory.h"

#include <algorithm>

namespace foreload {

bool MpiDirectory::Arena::has_slot(SampleId id) const {
  return id < note.samples && SharedArena::slot_offset(id) + SlotCopy::kBytes <= note.bytes;
}

PeerResult MpiDirectory::Arena::judge(const SlotCopy& slot, Bytes length) const {
  if (!slot.is_resident()) return PeerResult::kAbsent;
  if (length == 0 || slot.offset < SharedArena::table_bytes(note.samples)) return PeerResult::kWrong;
  const bool inside = slot.offset <= note.bytes && length <= note.bytes - slot.offset;
  return inside ? PeerResult::kHere : PeerResult::kAbsent;
}

void MpiDirectory::exposed(HostIndex host, const MpiNote& note) {
  if (note.samples > note.bytes / SlotCopy::kBytes || hosts_[host].size() == kMostArenas) return;
  hosts_[host].push_back({.note = note});
}

bool MpiDirectory::leaving(HostIndex host, std::uint64_t serial) {
  std::list<Arena>& arenas = hosts_[host];
  const auto found =
      std::find_if(arenas.begin(), arenas.end(), [&](auto& arena) { return arena.note.serial == serial; });
  if (found == arenas.end()) return true;
  found->leaving = true;
  if (found->readers > 0) return false;
  arenas.erase(found);
  return true;
}

MpiDirectory::Arena* MpiDirectory::acquire(HostIndex host, const PeerKey& key) {
  for (Arena& arena : hosts_[host]) {
    if (arena.leaving || arena.note.key != key) continue;
    ++arena.readers;
    return &arena;
  }
  return nullptr;
}

bool MpiDirectory::release(HostIndex host, Arena* arena) {
  if (--arena->readers > 0 || !arena->leaving) return false;
  hosts_[host].remove_if([&](const Arena& each) { return &each == arena; });
  return true;
}

}  // namespace foreload
