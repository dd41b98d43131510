// Flows: transfers under way at once over resources that they share, as a fluid: everybody's rate grows alike until a
// resource on the way, or the flow's own limit, is used up (max-min fairness). Times come in as arguments. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foreload/types.h"

namespace foreload {

using ResourceId = std::uint32_t;

class Flows {
 public:
  static constexpr std::size_t kMostUses = 4;
  // Of a resource: what a byte of the flow takes of it. 1 where it carries bytes; requests per byte where it counts
  // those.
  struct Use {
    ResourceId resource = 0;
    double per_byte = 1;
  };
  struct Path {
    std::array<Use, kMostUses> uses{};
    std::size_t count = 0;
    double limit = 0;  // bytes per second of the flow itself; infinite: none

    void through(ResourceId resource, double per_byte = 1) { uses[count++] = {resource, per_byte}; }
  };

  // `capacities`: units per second of each resource; infinite: no limit.
  explicit Flows(std::vector<double> capacities);
  // From `now` on.
  void set_capacity(Time now, ResourceId resource, double capacity);

  // `tag` names it when it ends. REQUIRES, in all: times do not go back.
  void start(Time now, const Path& path, double bytes, std::uint64_t tag);
  // It moves no further, and does not end. Nothing happens when there is none.
  void cancel(Time now, std::uint64_t tag);
  // When the next one ends, if nothing changes. Nothing: there are none, or none moves.
  std::optional<Time> next_end();
  // Tags of those that have ended by `now`, in the order in which they began.
  std::span<const std::uint64_t> ended(Time now);
  std::size_t count() const { return flows_.size(); }
  double rate(std::uint64_t tag);  // of the first flow with this tag; 0: there is none

 private:
  struct Flow {
    Path path;
    double left = 0;  // bytes
    double rate = 0;
    std::uint64_t tag = 0;
  };

  void move_on(Time now);
  void share();
  double next_level(double level, std::span<const std::uint32_t> open) const;
  void freeze(double level, std::vector<std::uint32_t>& open);

  std::vector<double> capacities_;
  std::vector<Flow> flows_;  // in the order of their beginning
  Time since_{0};
  bool is_shared_ = true;  // rates are those of the flows that there are
  std::optional<Time> next_end_;
  std::vector<std::uint64_t> ended_;
  // Of share(): what is left of a resource, and what the flows that still grow take per byte.
  std::vector<double> left_;
  std::vector<double> taken_;
  std::vector<ResourceId> touched_;
  std::vector<std::uint32_t> open_;
};

}  // namespace foreload
