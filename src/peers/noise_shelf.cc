#include "peers/noise_shelf.h"

#include "base/hash.h"
#include "base/random.h"

namespace foreload {

NoiseShelf::NoiseShelf(PeerShelf& others) : others_(others), noise_(kLongestNoise) {
  for (std::size_t i = 0; i < noise_.size(); ++i) noise_[i] = static_cast<std::byte>(mix64(i + 1));
}

bool NoiseShelf::knows(const PeerKey& key) const {
  return key == kNoiseKey || others_.knows(key);
}

void NoiseShelf::expect(const PeerKey& key, std::span<const PeerItem> items) {
  if (!(key == kNoiseKey)) others_.expect(key, items);
}

PeerShelf::Taken NoiseShelf::take(const PeerKey& key, const PeerItem& item) {
  if (!(key == kNoiseKey)) return others_.take(key, item);
  if (item.length == 0 || item.length > kLongestNoise) return {};
  const std::span<const std::byte> bytes(noise_.data(), item.length);
  return {.kind = Taken::Kind::kHere, .lease = Lease(this, item.id, bytes), .hash = hash_bytes(bytes)};
}

}  // namespace foreload
