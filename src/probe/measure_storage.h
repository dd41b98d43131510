// What storage gives: whole samples, cold, at growing depths and in a row; and the same files from the page cache.
#pragma once

#include <string>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "lab/measured.h"
#include "probe/windows.h"

namespace foreload {

// How reads of a dataset are made cold.
enum class Coldness {
  kDirect,    // O_DIRECT
  kDropped,   // taken out of the page cache before
  kAsItIs,    // neither works: what the page cache has comes from there
  kMemory,    // a file system in memory: nothing is colder
  kElsewhere  // objects: this machine keeps nothing of them
};
Coldness find_coldness(const Source& source, std::uint64_t seed);

inline constexpr std::uint64_t kLeastSamples = 16;  // a dataset with fewer says nothing

// Fills in storage, sequential and page_cache, and the stage "read"; what it can not, stands in missing.
Status measure_storage(const Source& source, const LoaderOptions& options, Allowance& allowance, Measured& measured);

}  // namespace foreload
