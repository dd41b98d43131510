// NoiseShelf: beside what a host has for others, noise of any length, under a key of its own. So the way to an agent
// can be measured by fetching from it as samples are fetched, before there is a job.
#pragma once

#include <vector>

#include "peers/peers.h"

namespace foreload {

inline constexpr PeerKey kNoiseKey{
    .fingerprint = 0x6e6f697365206f66, .validators = 0x20616e2061676e74, .roster = 0x666f72656c6f6164};
inline constexpr Bytes kLongestNoise = 1_MiB;

class NoiseShelf final : public PeerShelf, private LeaseBook {
 public:
  // `others` has everything else, and outlives this.
  explicit NoiseShelf(PeerShelf& others);

  bool knows(const PeerKey& key) const override;
  void expect(const PeerKey& key, std::span<const PeerItem> items) override;
  Taken take(const PeerKey& key, const PeerItem& item) override;

 private:
  // Noise stays as long as the shelf.
  void add(SampleId) override {}
  void drop(SampleId) override {}

  PeerShelf& others_;
  std::vector<std::byte> noise_;
};

}  // namespace foreload
