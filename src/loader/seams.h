// Where tests, and the command that fills a disk cache, reach into a loader that is otherwise opened as users do.
#pragma once

#include "base/read_engine.h"
#include "foreload/loader.h"
#include "plan/roster.h"
#include "tier/disk_store.h"

namespace foreload {

struct Seams {
  bool only_fill = false;             // no batch is ever asked for: all of transit is for filling the homes
  ReadFault* read_fault = nullptr;    // sees every raw read result; must outlive the loader
  WriteFault* write_fault = nullptr;  // the same for writes of the disk tier
  unsigned slots = 0;                 // of the ring, with so many batches' bytes; 0: what the memory plan says
  unsigned host_cores = 0;            // of a host that is made here; 0: those of this process
  std::optional<Roster> roster{};     // of the job: positions are assigned by it
};

Result<Loader> open_with_seams(LoaderOptions options, const Seams& seams);

}  // namespace foreload
