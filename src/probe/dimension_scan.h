// scan_dimensions: width and height of every sample, from the headers alone. Reads a few KiB per sample, with
// many reads under way at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

struct DimensionScanOptions {
  unsigned threads = 16;                             // they wait for storage more than they work
  std::function<bool()> stop;                        // asked before every sample, from any thread
  std::function<void(std::uint64_t done)> progress;  // from any thread
};

struct DimensionScan {
  std::vector<Dimensions> dimensions;  // by sample id; zeros where the header told nothing
  std::uint64_t unknown = 0;
  std::string example;  // why, for the first of the unknown ones
};

// Samples whose dimensions the source knows already are not read. Errors: a file that can not be read or has
// changed since it was indexed; kCancelled when stopped.
Result<DimensionScan> scan_dimensions(const Source& source, const DimensionScanOptions& options);

}  // namespace foreload
