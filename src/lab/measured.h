// Measured: what was found out about a machine and a dataset, every figure with how sure it is. Plain values: probe/
// fills them in, the model reads them. What could not be measured has no windows, and stands in `missing` with the
// reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foreload/types.h"

namespace foreload {

// The median of repeated short windows, and between what it lies with 95 % confidence.
struct Figure {
  double value = 0;
  double low = 0;
  double high = 0;
  unsigned windows = 0;

  bool known() const { return windows > 0; }
};

// Lengths of the samples: exact where the index has them.
struct SizeShape {
  Bytes smallest = 0;
  Bytes p10 = 0;
  Bytes median = 0;
  Bytes p90 = 0;
  Bytes p99 = 0;
  Bytes largest = 0;
};

struct StorageAt {
  unsigned depth = 1;  // reads under way at once
  Figure bytes_per_s;
};

// How much of a sample's bytes a miss reads: less than 1 where its crop is enough and storage is slow enough for a
// second request to pay.
struct ReadAt {
  double bytes_per_s = 0;  // of storage
  Figure share;
};

struct PrepStage {
  std::string name;  // read, decode, crop+resize, normalise, collate
  Figure seconds;    // per sample, on one core
};

struct PrepAt {
  unsigned threads = 1;
  Figure samples_per_s;
};

struct Measured {
  std::uint64_t samples = 0;
  Bytes bytes = 0;
  SizeShape sizes;
  std::vector<StorageAt> storage;  // cold, whole samples in random order, by depth
  std::string storage_how;         // in what way they were cold
  Figure sequential;               // cold, one after the other: bytes per second
  Figure page_cache;               // the same files, warm: bytes per second
  Figure memory;                   // out of the memory tier into a batch: bytes per second
  Figure disk;                     // out of the disk tier: bytes per second
  Figure network;                  // between hosts: bytes per second
  std::vector<ReadAt> read_share;  // by the rate of storage, rising; none: misses read whole samples
  std::vector<PrepStage> stages;
  std::vector<PrepAt> prep;  // the whole chain, by threads
  Figure accelerator;        // samples per second that it takes

  struct Missing {
    std::string what;
    std::string why;
  };
  std::vector<Missing> missing;
  Bytes bytes_read = 0;  // of the dataset, for all of this
};

// The best depth: the one that surely gives most. The largest of several medians would be the luckiest.
inline Figure best_storage(const std::vector<StorageAt>& depths) {
  Figure best;
  for (const StorageAt& at : depths) {
    if (at.bytes_per_s.known() && (!best.known() || at.bytes_per_s.low > best.low)) best = at.bytes_per_s;
  }
  return best;
}

}  // namespace foreload
