// HetPipe (arXiv 2005.14038): virtual workers of unlike accelerators run one network as a pipeline each, and
// synchronise in waves. Partitioning is exact by dynamic programming; waves are played with a virtual clock. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"
#include "lab/layers.h"

namespace foreload {

struct Gpu {
  std::string name;
  double flops = 10e12;  // per second, that it reaches
  Bytes memory = 12'000'000'000;
};

struct StagePlan {
  std::vector<std::size_t> gpus;    // by stage: which of those that were given
  std::vector<std::size_t> begins;  // of the stages' layers, and the end
  double slowest = 0;               // seconds of a minibatch in the slowest stage: the pace when it is full
};

struct PipelineSetup {
  std::uint64_t batch = 32;  // of a minibatch
  double link = 7e9;         // between stages: bytes per second
};

// Contiguous stages in the best order of the accelerators, each within its memory; of all such, one whose slowest stage
// is fastest. kNoMemory: the network does not fit. REQUIRES: 1 to 8 of them.
Result<StagePlan> partition(const Network& network, std::span<const Gpu> gpus, const PipelineSetup& setup);

// What a stage takes: weights, gradients and momentum, and activations of the minibatches that are on their way.
Bytes stage_bytes(const Network& network, std::size_t begin, std::size_t end, std::uint64_t batch,
                  std::size_t in_flight);

struct WaveSetup {
  std::uint64_t minibatches = 4;  // of a wave: s_local + 1
  std::uint64_t distance = 0;     // most waves that one may be ahead of the slowest: D
  double sync = 0;                // seconds to send a wave's update and get the others'
};

struct Waves {
  std::vector<std::uint64_t> done;  // by virtual worker
  std::vector<double> waited;       // seconds
  std::uint64_t farthest = 0;       // largest distance that there was
  double minibatches_per_s = 0;     // of all together
};

// Wave Synchronous Parallel for `seconds`. `paces`: seconds per minibatch of each virtual worker.
Waves play_waves(std::span<const double> paces, const WaveSetup& setup, double seconds);

}  // namespace foreload
