// Cutter: what a host that is asked for a crop sends instead of the whole sample: the small JPEG that holds the crop.
// Any thread; never blocks.
#pragma once

#include <atomic>
#include <memory>

#include "peers/peers.h"

namespace foreload {

class Cutter {
 public:
  // At most so many bytes of cuts at once, until their leases are dropped; meanwhile samples go out whole.
  static constexpr Bytes kMost = 64_MiB;

  explicit Cutter(Bytes most = kMost) : most_(most) {}

  // Puts the cut, with its hash, in the place of `sample`, and says so. False: it stays as it is, because the item
  // wants all of it, or it can not be cut, or not be made much smaller, or its bytes are not those that it was kept
  // with: who gets them will see that, too. REQUIRES: `sample` is here.
  bool cut(const PeerItem& item, PeerShelf::Taken& sample) const;

 private:
  const Bytes most_;
  std::shared_ptr<std::atomic<Bytes>> held_ = std::make_shared<std::atomic<Bytes>>(0);  // by cuts
};

}  // namespace foreload
