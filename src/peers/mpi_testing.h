// What the tests over MPI share: arenas with samples of known bytes, and fetches that wait. Every process of the job
// makes the same tests at the same time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/region.h"
#include "peers/peers_mpi.h"
#include "tier/shared_arena.h"

namespace foreload {

using namespace std::chrono_literals;

inline constexpr std::uint64_t kSamples = 300;
inline constexpr Duration kPatience = 60s;  // far more than anything takes
inline const PeerKey kKey{.fingerprint = 11, .validators = 12, .roster = 13};

inline MpiPeers* peers = nullptr;

// Some of one piece, of many, and around a piece's end.
inline Bytes length_of(SampleId id) {
  constexpr Bytes kEdges[] = {MpiDesk::kPiece, MpiDesk::kPiece - 1, MpiDesk::kPiece + 1, 3 * MpiDesk::kPiece, 1};
  const SampleId kind = id / 4 % 13;  // the same on every host
  return kind < std::size(kEdges) ? kEdges[kind] : 1000 + id * 7919 % 150'000;
}
inline std::byte content(SampleId id, Bytes at) {
  return static_cast<std::byte>(id * 31 + at + (at >> 8) * 17);
}
inline bool is_whole(SampleId id, std::span<const std::byte> bytes) {
  for (Bytes i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != content(id, i)) return false;
  }
  return bytes.size() == length_of(id);
}
inline HostIndex home_of(SampleId id) {
  return static_cast<HostIndex>(id % peers->hosts());
}

// A host's arena, with the samples that it is home of; exposed while it lives.
class Shelf {
 public:
  explicit Shelf(const PeerKey& key = kKey)
      : key_(key), region_(*Region::map(SharedArena::region_bytes(options()), "a test")) {
    SampleId id = 0;
    const auto next = [&] { return id < kSamples ? std::optional(id++) : std::nullopt; };
    SharedArena::format(region_.bytes(), options(), next, length_of);
    arena_ = std::move(*SharedArena::open(region_.bytes(), options(), {}, [](MemberId) { return true; }));
    arena_->reserved_to(arena_->end());
    for (SampleId each = 0; each < kSamples; ++each) {
      if (home_of(each) == peers->host()) put(each);
    }
    EXPECT_TRUE(peers->expose(key_, region_.bytes(), kSamples).ok());
  }
  ~Shelf() { EXPECT_TRUE(withdraw()); }
  bool withdraw() { return peers->withdraw(key_, now() + kPatience); }

  std::span<std::byte> bytes_of(SampleId id) { return region_.bytes().subspan(slot(id).offset, length_of(id)); }
  SlotCopy slot(SampleId id) {
    return SlotCopy::parse(region_.bytes().subspan(SharedArena::slot_offset(id)).first<SlotCopy::kBytes>());
  }
  // Another life of the slot, with the same bytes.
  void revive(SampleId id) {
    auto* word = reinterpret_cast<std::uint64_t*>(region_.bytes().data() + SharedArena::slot_offset(id));
    std::atomic_ref(*word).fetch_add(std::uint64_t{1} << 48);
  }

 private:
  static SharedArenaOptions options() {
    Bytes homes = 0;
    for (SampleId id = 0; id < kSamples; ++id) homes += SharedArena::footprint(length_of(id));
    return {.samples = kSamples, .homes = homes};
  }
  void put(SampleId id) {
    std::span<std::byte> into;
    ASSERT_EQ(arena_->begin(id, length_of(id), into), SharedArena::Begun::kMine);
    for (Bytes i = 0; i < into.size(); ++i) into[i] = content(id, i);
    (void)arena_->commit(id, length_of(id));
  }

  PeerKey key_;
  Region region_;
  std::unique_ptr<SharedArena> arena_;
};

// All processes of the job come here.
inline std::vector<std::string> meet(const std::string& mine = "") {
  auto all = peers->exchange(mine, now() + kPatience);
  EXPECT_TRUE(all.ok());
  if (!all.ok()) std::abort();  // the others are somewhere else: nothing that follows would mean anything
  return std::move(*all);
}

// A sample from a host, by a deadline.
struct Got {
  PeerResult result = PeerResult::kUnreachable;
  std::vector<std::byte> bytes;
};
inline std::vector<Got> fetch(HostIndex host, const std::vector<SampleId>& ids, Time deadline,
                              const PeerKey& key = kKey) {
  std::vector<Got> got(ids.size());
  std::vector<PeerWant> wants;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    got[i].bytes.resize(length_of(ids[i]));
    wants.push_back({.id = ids[i], .into = got[i].bytes, .token = i});
  }
  peers->fetch(host, key, wants, deadline);
  std::vector<PeerEnd> ends;
  while (ends.size() < ids.size() && now() < deadline + kPatience) peers->wait(ends, deadline + kPatience);
  EXPECT_EQ(ends.size(), ids.size());
  for (const PeerEnd& end : ends) got[end.token].result = end.result;
  return got;
}
inline Got fetch_one(HostIndex host, SampleId id, const PeerKey& key = kKey) {
  return std::move(fetch(host, {id}, now() + kPatience, key)[0]);
}
inline HostIndex neighbour() {
  return (peers->host() + 1) % peers->hosts();
}
inline SampleId sample_of(HostIndex host) {
  return host + peers->hosts() * 3;
}

}  // namespace foreload
