// The steps of Loader::open that check and derive, apart from the ones that start things.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foreload/loader.h"
#include "host/joining.h"
#include "loader/seams.h"
#include "pipeline/ring.h"
#include "plan/assignment.h"
#include "plan/memory_plan.h"
#include "plan/stream.h"
#include "prep/chain.h"
#include "tier/arena.h"
#include "tier/dimension_table.h"

namespace foreload {

// Options that can not work whatever the dataset is.
Status check_options(const LoaderOptions& options);
// Contradictions between options and dataset: batch or world larger than it.
Status check_against(const LoaderOptions& options, const Source& source);

// How this loader joins its host. REQUIRES: there is one.
JoinOptions join_options(const LoaderOptions& options, const Seams& seams);
std::uint32_t learners_here(const LoaderOptions& options);  // of the job, on this machine
JobShape job_shape(const LoaderOptions& options, const Source& source);
// A chain that mixes pairs needs whole ones on every rank.
Status check_pairs(const JobShape& shape);
// The options' chain, or what suits the dataset's first sample.
Result<ChainOptions> choose_chain(const LoaderOptions& options, const Source& source);

ArenaOptions arena_options(std::uint64_t samples, const MemoryPlan& memory);
RingOptions ring_options(const Chain& chain, const Stream& stream, const Source& source, unsigned slots);

struct SizedPlan {
  MemoryPlan memory;
  Bytes budget = 0;
  Bytes longest_sample = 0;  // longer ones are bad samples
};
Result<SizedPlan> size_memory(const LoaderOptions& options, const Source& source, const Chain& chain,
                              const Stream& stream, unsigned threads);
// Fewer batches ahead than planned, in the ring and in bytes, where a test wants that.
void limit_ahead(SizedPlan& plan, const Seams& seams, const Stream& stream);
// Rewriting grows samples in their place, which does not go with samples that come and go.
Rewrite rewrite_mode(const LoaderOptions& options);

// Writes dimensions that were learned while reading into the index, for the next open, once they are worth it: a tenth
// of the dataset, or all that was missing. Failing to do so harms nobody.
void remember_dimensions(const Source& source, const DimensionTable& learned);

}  // namespace foreload
