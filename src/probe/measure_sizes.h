// What the index alone tells: how long samples are, and how much of one has to be read where its crop is enough.
#pragma once

#include <vector>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "lab/measured.h"

namespace foreload {

// Of all samples, or of so many that the seed chooses.
inline constexpr std::uint64_t kMostLengths = 65'536;
SizeShape measure_sizes(const Source& source, std::uint64_t seed);

// The share of a sample's bytes that a loader with these options reads of one that it does not keep, from storage of
// this rate: 1 unless the record index knows the rows of its JPEGs.
Result<Figure> measure_read_share(const Source& source, const LoaderOptions& options, double bytes_per_s);
// The same for storage that is up to 64 times as slow and as fast, in octaves.
Result<std::vector<ReadAt>> measure_read_shares(const Source& source, const LoaderOptions& options, double bytes_per_s);

}  // namespace foreload
