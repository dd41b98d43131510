// LoadingSystem: one way to load training data over a cluster: who holds what, and who reads what from where for a
// given step. Each is one file, system_NAME.cc, made of the plans and policies of the product wherever it has them. A
// system is told steps in order and says what each feeder loads; how long that takes is the simulation's business.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "foreload/schedule.h"
#include "foreload/types.h"
#include "lab/cluster.h"
#include "plan/assignment.h"
#include "plan/roster.h"

namespace foreload {

enum class KeptAt : std::uint8_t { kMemory, kDisk, kPeer, kStorage };
inline constexpr std::size_t kPlaces = 4;
const char* place_name(KeptAt place);  // "memory", …

struct Amount {
  std::uint64_t samples = 0;
  Bytes bytes = 0;

  void add(Bytes more) {
    ++samples;
    bytes += more;
  }
  void add(const Amount& more) {
    samples += more.samples;
    bytes += more.bytes;
  }
};

// What one feeder loads for one step.
struct Load {
  std::uint64_t samples = 0;           // to be prepared
  std::array<Amount, kPlaces> from{};  // bytes that come to it
  Amount for_others{};                 // of these from storage: for peers, to which its host sends them

  Amount& at(KeptAt place) { return from[static_cast<std::size_t>(place)]; }
  const Amount& at(KeptAt place) const { return from[static_cast<std::size_t>(place)]; }
};

// What all do in one step.
struct StepLoads {
  std::vector<Load> feeders;
  std::vector<Amount> sent;            // by host, over its link
  std::vector<Amount> sent_from_disk;  // of these, read from its disk first
  std::uint64_t order_hash = 0;        // Σ xxh3(id, seed = position), as `foreload run --hash` has it
  std::uint64_t positions = 0;

  void clear(std::size_t feeder_count, std::size_t hosts);
  void took(std::size_t feeder, Position position, SampleId id);
};

// Which hosts can be asked; none is left out: all can.
class Reach {
 public:
  bool is_up(HostIndex host) const { return host >= down_.size() || !down_[host]; }
  void set(HostIndex host, bool up);

 private:
  std::vector<bool> down_;
};

struct SystemTraits {
  bool pools_host = false;      // one feeder for all learners of a host, and all its cores; otherwise each has its own
  bool prepares_once = false;   // jobs on the same data share one stream
  bool crosses_epochs = false;  // loads the next epoch's batches while one ends
  bool blocks_workers = false;  // a worker that waits for a read does not prepare
  bool loads = true;            // false: batches are there by themselves
  bool exactly_once = true;     // every sample once an epoch, in an order that is shuffled over all
  unsigned ahead = 2;           // batches ahead of the learner
};

class LoadingSystem {
 public:
  virtual ~LoadingSystem() = default;
  virtual SystemTraits traits() const = 0;
  virtual std::uint64_t steps_per_epoch() const = 0;
  // Every step once, in order. `out` has been cleared.
  virtual void plan(Epoch epoch, std::uint64_t step, const Reach& reach, StepLoads& out) = 0;
  // A host came back with nothing in its memory.
  virtual void forget(HostIndex) {}
};

// What all systems are made of. Must outlive them.
struct SystemScene {
  ClusterSetup setup{};
  std::vector<std::uint32_t> lengths{};
  // What a sample takes of a cache; empty: its length.
  std::vector<std::uint32_t> footprints{};

  Bytes footprint(SampleId id) const { return footprints.empty() ? lengths[id] : footprints[id]; }
};

struct SystemKind {
  const char* name;
  const char* says;
  std::unique_ptr<LoadingSystem> (*make)(const SystemScene& scene);
  // What it takes of this machine's memory, about.
  Bytes (*bytes)(const ClusterSetup& setup);
};

std::span<const SystemKind> system_kinds();
// kNotFound lists the names.
Result<const SystemKind*> find_system(std::string_view name);

}  // namespace foreload
