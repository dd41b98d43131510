#include "lab/loading_system.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "lab/systems.h"

namespace foreload {
namespace {

Bytes no_memory(const ClusterSetup&) {
  return 0;
}
// Tables over all samples, for every host.
Bytes table_per_host(const ClusterSetup& setup) {
  return setup.hosts * setup.samples * 24;
}
Bytes bit_per_host(const ClusterSetup& setup) {
  return setup.hosts * setup.samples / 8;
}

constexpr auto kKinds = std::to_array<SystemKind>({
    {"none", "no loading at all: the accelerators' own time", make_unlimited, no_memory},
    {"naive", "every sample from storage, every time", make_naive, no_memory},
    {"page-cache", "what Linux' page cache keeps, host by host", make_page_cache, table_per_host},
    {"page-cache-in-order", "the same, but files are read in their order", make_page_cache_in_order, table_per_host},
    {"lru", "least recently used goes, host by host", make_lru, table_per_host},
    {"minio", "CoorDL's cache of a host: admit until full, never evict", make_minio, bit_per_host},
    {"partitioned", "CoorDL over hosts: each keeps what it read first, others ask it", make_partitioned, no_memory},
    {"locality", "Yang & Cong: learners take what their host keeps, surplus moves", make_locality, no_memory},
    {"nopfs", "NoPFS: each keeps what it will use most; else from a peer, else from storage", make_nopfs, bit_per_host},
    {"lobster", "Lobster: reuse distance, last copies stay, threads where they lack", make_lobster, table_per_host},
    {"local", "DeepIO: each learner shuffles its own part only", make_local, no_memory},
    {"partial", "partial re-shuffle: a share of the samples moves each epoch", make_partial, no_memory},
    {"echo", "data echoing: every sample read is used several times", make_echo, table_per_host},
    {"coordinated", "CoorDL: jobs on the same data prepare each batch once", make_coordinated, bit_per_host},
    {"foreload", "what this runtime does", make_foreload, no_memory},
});

}  // namespace

const char* place_name(KeptAt place) {
  switch (place) {
    case KeptAt::kMemory:
      return "memory";
    case KeptAt::kDisk:
      return "disk";
    case KeptAt::kPeer:
      return "peer";
    case KeptAt::kStorage:
      return "source";
  }
  return "";
}

void StepLoads::clear(std::size_t feeder_count, std::size_t hosts) {
  feeders.assign(feeder_count, {});
  sent.assign(hosts, {});
  sent_from_disk.assign(hosts, {});
  order_hash = positions = 0;
}

void StepLoads::took(std::size_t feeder, Position position, SampleId id) {
  ++feeders[feeder].samples;
  ++positions;
  order_hash += hash_bytes(std::as_bytes(std::span(&id, 1)), position);
}

void Reach::set(HostIndex host, bool up) {
  if (host >= down_.size()) down_.resize(host + 1);
  down_[host] = !up;
}

std::span<const SystemKind> system_kinds() {
  return kKinds;
}

Result<const SystemKind*> find_system(std::string_view name) {
  const auto found = std::ranges::find_if(kKinds, [&](const SystemKind& kind) { return kind.name == name; });
  if (found != kKinds.end()) return &*found;
  std::vector<std::string_view> names;
  for (const SystemKind& kind : kKinds) names.emplace_back(kind.name);
  return Error{Code::kNotFound,
               fmt::format("there is no system \"{}\": {}", name.substr(0, 40), fmt::join(names, ", "))};
}

}  // namespace foreload
