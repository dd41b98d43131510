// Rooms for samples on hosts, counted in bytes: what systems that cache are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/loading_system.h"
#include "policy/eviction.h"

namespace foreload {

// A host's memory without bytes, for an eviction policy of the product.
class ByteRoom : public Room {
 public:
  ByteRoom(const SystemScene& scene, Bytes capacity)
      : scene_(&scene), here_(scene.setup.samples), capacity_(capacity) {}

  bool has(SampleId id) const { return here_[id]; }
  Bytes used() const { return used_; }

  bool take(SampleId id) override {
    const Bytes more = scene_->footprint(id);
    if (more > capacity_ - used_) return false;
    used_ += more;
    return here_[id] = true;
  }
  bool evict(SampleId id) override {
    used_ -= scene_->footprint(id);
    here_[id] = false;
    return true;
  }
  void clear() {
    here_.assign(here_.size(), false);
    used_ = 0;
  }

 private:
  const SystemScene* scene_;
  std::vector<bool> here_;
  Bytes capacity_;
  Bytes used_ = 0;
};

// Samples that stay with the host that used them first, while it has room: one home each, over all hosts.
class FirstHomes {
 public:
  static constexpr std::uint16_t kNobody = 0xffff;

  explicit FirstHomes(const SystemScene& scene)
      : scene_(scene), homes_(scene.setup.samples, kNobody), used_(scene.setup.hosts) {}

  // Who has it; if nobody, the host keeps it from now on when it has room.
  std::uint16_t find_or_keep(SampleId id, HostIndex host) {
    const std::uint16_t home = homes_[id];
    if (home != kNobody) return home;
    const Bytes more = scene_.footprint(id);
    if (more > scene_.setup.cache - used_[host]) return kNobody;
    used_[host] += more;
    homes_[id] = static_cast<std::uint16_t>(host);
    return kNobody;
  }
  std::uint16_t home(SampleId id) const { return homes_[id]; }
  void forget(HostIndex host) {
    used_[host] = 0;
    for (std::uint16_t& home : homes_) home = home == host ? kNobody : home;
  }

 private:
  const SystemScene& scene_;
  std::vector<std::uint16_t> homes_;
  std::vector<Bytes> used_;
};

}  // namespace foreload
