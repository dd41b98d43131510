// Refusals: which keys a peer has just refused. Whoever does not have a dataset, plan or roster is asked for it again
// after a pause, not with every batch: hosts begin at different times. A plain table of a bounded size.
#pragma once

#include <algorithm>
#include <vector>

#include "foreload/types.h"
#include "peers/peers.h"

namespace foreload {

class Refusals {
 public:
  static constexpr Duration kPause = std::chrono::milliseconds(500);
  static constexpr std::size_t kMostKeys = 16;  // the one that was refused longest ago is forgotten

  // Not to be asked for it yet.
  bool refuses(const PeerKey& key, Time now) const {
    const auto found = find(key);
    return found != entries_.end() && now < found->until;
  }
  void on_refused(const PeerKey& key, Time now) {
    on_served(key);
    if (entries_.size() == kMostKeys) entries_.erase(entries_.begin());
    entries_.push_back({key, now + kPause});
  }
  void on_served(const PeerKey& key) {
    const auto found = find(key);
    if (found != entries_.end()) entries_.erase(found);
  }

 private:
  struct Entry {
    PeerKey key{};
    Time until{};
  };

  std::vector<Entry>::const_iterator find(const PeerKey& key) const {
    return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  }

  std::vector<Entry> entries_;  // by time
};

}  // namespace foreload
