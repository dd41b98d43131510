// The disk tier of a loader, opened as its options say.
#pragma once

#include <memory>

#include "foreload/loader.h"
#include "foreload/source.h"
#include "loader/seams.h"
#include "plan/placement.h"
#include "tier/disk_tier.h"

namespace foreload {

// Options that can not work: a size without a folder, a folder inside of the dataset.
Status check_disk(const LoaderOptions& options);

// Null when none is asked for, or none can be had, which is a warning. An error: the folder can not be meant.
// `memory`: which samples have their home above. `longest`: longer samples are not kept. All but `options` must outlive
// it.
Result<std::unique_ptr<DiskTier>> open_disk(const LoaderOptions& options, const Source& source, const Placement& memory,
                                            Bytes longest, const Seams& seams);

}  // namespace foreload
