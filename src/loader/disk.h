// The disk tier of a loader, opened as its options say.
#pragma once

#include <memory>

#include "foreload/loader.h"
#include "foreload/source.h"
#include "loader/job.h"
#include "loader/seams.h"
#include "plan/placement.h"
#include "tier/disk_seat.h"
#include "tier/disk_tier.h"

namespace foreload {

// Options that can not work: a size without a folder, a folder inside of the dataset.
Status check_disk(const LoaderOptions& options);

// Null when none is asked for, or none can be had, which is a warning. An error: the folder can not be meant.
// `memory`: which samples have their home above. `longest`: longer samples are not kept. Source and seams must outlive
// it.
struct DiskNeeds {
  const LoaderOptions& options;
  const Source& source;
  const Placement& memory;
  const JobPlan& job;
  const DiskSeat* seat;  // among the disks that hosts share; null: they share none
  Bytes longest;
  const Seams& seams;
};
Result<std::unique_ptr<DiskTier>> open_disk(const DiskNeeds& needs);

}  // namespace foreload
