// What prep costs: by stage on one core, as differences between what the chain takes with and without it; and behind a
// real loader whose samples are all in memory, with 1 … k threads. `options` are a specimen's.
#pragma once

#include <string>
#include <vector>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "lab/measured.h"
#include "probe/windows.h"

namespace foreload {

// Adds the stages decode, crop+resize and normalise; of arrays, copy.
Status measure_stages(const LoaderOptions& options, Allowance& allowance, Measured& measured);
// Fills in prep, and adds the stage collate: what a loader takes of a core beside the stages that are known by then.
Status measure_threads(const LoaderOptions& options, std::optional<unsigned> asked, Allowance& allowance,
                       Measured& measured);
// Fills in memory: samples go from the memory tier into a batch, as they are.
Status measure_memory(const LoaderOptions& options, Allowance& allowance, Measured& measured);

// Numbers of threads that are worth a measurement: doubled up to the cores, and the one that was asked for, if each of
// them has a core.
std::vector<unsigned> thread_counts(unsigned cores, std::optional<unsigned> asked);

}  // namespace foreload
