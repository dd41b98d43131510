// Rates of the parts of a loader on this machine, each beside its limit: what plain code without a loader around it
// reaches with the same bytes, chain and threads.
#pragma once

#include <cstddef>
#include <vector>

#include "foreload/loader.h"
#include "prep/chain.h"

namespace foreload {

// All bytes of a dataset, in memory.
struct LoadedSamples {
  std::vector<std::byte> bytes;
  std::vector<std::span<const std::byte>> samples;
};
// At most `most` bytes, from the first sample on.
Result<LoadedSamples> load_samples(const Source& source, Bytes most);

// Returns when this process does nothing any more, or after three seconds: a loader that fills its ring would disturb
// the next measurement.
void wait_until_idle();

// Samples per second of the bare chain: every thread runs it over `samples`, into batches of its own.
Result<double> chain_rate(const LoadedSamples& samples, const Chain& chain, unsigned threads, Duration duration);
// Samples per second of next(), on a loader whose dataset is cached, once the batches prepared before are used up.
Result<double> loader_rate(Loader& loader, Duration duration);
// Bytes per second of a plain loop that opens and reads file after file.
Result<double> read_rate(const Source& source, Duration duration);

double median(std::vector<double> values);

}  // namespace foreload
