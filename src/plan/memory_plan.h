// MemoryPlan: one budget, divided once: batches, scratch for decoding, the cache with its table, bytes in transit.
// Pure. Peak use never exceeds the budget because every part is a fixed region or a counted pool.
#pragma once

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

struct MemoryNeeds {
  Bytes budget = 0;
  Bytes slot_bytes = 0;       // one batch slot of the ring
  unsigned held_batches = 2;  // that the caller may keep
  unsigned threads = 1;       // prep workers
  Bytes runner_bytes = 0;     // fixed memory of one worker
  Bytes table_bytes = 0;      // the arena beside its usable bytes
  Bytes all_footprint = 0;    // what caching every sample would take
  Bytes growth = 0;           // what that would take more, if cached samples may grow
  Bytes longest_footprint = 0;
  Bytes mean_footprint = 0;
  unsigned read_depth = 128;  // reads in flight at most
  bool direct = false;        // reads go through bounce buffers
  bool cache = true;
  bool disk = false;         // a disk tier is filled
  bool substitutes = false;  // bad samples may be replaced: keep room for one
  Bytes hold = 0;            // transit beside what passes: samples whose echo is to come
};

struct MemoryPlan {
  unsigned slots = 0;
  Bytes scratch = 0;
  Bytes bounce = 0;
  Bytes bounce_each = 0;  // per read; longer ones go in pieces
  Bytes home = 0;
  bool growth = false;  // home has room for all samples and their growth
  Bytes transit = 0;
  Bytes hold = 0;  // of transit
  Bytes urgent = 0;
  Bytes onward = 0;  // on the way to the disk, beside transit
  unsigned read_depth = 0;
  Bytes longest_footprint = 0;  // a sample that takes more is a bad sample
};

// kNoMemory names every part's need and the smallest budget that would do.
Result<MemoryPlan> plan_memory(const MemoryNeeds& needs);

}  // namespace foreload
