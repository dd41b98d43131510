#include "lab/hetpipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/text.h"
#include "lab/event_queue.h"

namespace foreload {
namespace {

constexpr double kForwardAndBack = 3;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostGpus = 8;
constexpr std::uint64_t kMostWaves = 10'000'000;

// Sums over the layers, so that a stage's cost is a difference.
class Sums {
 public:
  explicit Sums(const Network& network) : flops_(1), parameters_(1), activations_(1) {
    for (const Layer& layer : network.layers) {
      flops_.push_back(flops_.back() + layer.flops);
      parameters_.push_back(parameters_.back() + layer.parameter_bytes());
      activations_.push_back(activations_.back() + layer.activation_bytes());
    }
  }
  double flops(std::size_t begin, std::size_t end) const { return flops_[end] - flops_[begin]; }
  Bytes bytes(std::size_t begin, std::size_t end, std::uint64_t batch, std::size_t in_flight) const {
    constexpr Bytes kCopies = 3;  // weights, gradients, momentum
    return kCopies * (parameters_[end] - parameters_[begin]) +
           (activations_[end] - activations_[begin]) * batch * in_flight;
  }

 private:
  std::vector<double> flops_;
  std::vector<Bytes> parameters_;
  std::vector<Bytes> activations_;
};

class Partitioning {
 public:
  Partitioning(const Network& network, std::span<const Gpu> gpus, const PipelineSetup& setup)
      : network_(network), gpus_(gpus), setup_(setup), sums_(network) {}

  // The best cut for this order of the accelerators: the first k layers on the first s of them, for all k and s.
  StagePlan cut(std::span<const std::size_t> order) const {
    const std::size_t layers = network_.layers.size();
    const std::size_t stages = order.size();
    std::vector<std::vector<double>> best(stages + 1, std::vector<double>(layers + 1, kNever));
    std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(layers + 1));
    best[0][0] = 0;
    for (std::size_t stage = 1; stage <= stages; ++stage) {
      for (std::size_t end = stage; end <= layers; ++end) {
        for (std::size_t begin = stage - 1; begin < end; ++begin) {
          if (best[stage - 1][begin] >= best[stage][end]) continue;
          const double slowest = std::max(best[stage - 1][begin], seconds(begin, end, order, stage - 1));
          if (slowest >= best[stage][end]) continue;
          best[stage][end] = slowest;
          from[stage][end] = begin;
        }
      }
    }
    StagePlan made{{order.begin(), order.end()}, std::vector<std::size_t>(stages + 1), best[stages][layers]};
    made.begins[stages] = layers;
    for (std::size_t stage = stages; stage > 0; --stage) made.begins[stage - 1] = from[stage][made.begins[stage]];
    return made;
  }

 private:
  double seconds(std::size_t begin, std::size_t end, std::span<const std::size_t> order, std::size_t stage) const {
    const Gpu& gpu = gpus_[order[stage]];
    if (sums_.bytes(begin, end, setup_.batch, order.size() - stage) > gpu.memory) return kNever;
    const auto batch = static_cast<double>(setup_.batch);
    const double compute = kForwardAndBack * sums_.flops(begin, end) * batch / gpu.flops;
    const bool is_last = end == network_.layers.size();
    const double sent = is_last ? 0 : 2 * static_cast<double>(network_.layers[end - 1].activation_bytes()) * batch;
    return std::max(compute, sent / setup_.link);  // sending overlaps with computing
  }

  const Network& network_;
  std::span<const Gpu> gpus_;
  PipelineSetup setup_;
  Sums sums_;
};

}  // namespace

Bytes stage_bytes(const Network& network, std::size_t begin, std::size_t end, std::uint64_t batch,
                  std::size_t in_flight) {
  return Sums(network).bytes(begin, end, batch, in_flight);
}

Result<StagePlan> partition(const Network& network, std::span<const Gpu> gpus, const PipelineSetup& setup) {
  FORELOAD_CHECK(!gpus.empty() && gpus.size() <= kMostGpus, "the caller has 1 to 8 accelerators");
  const Partitioning partitioning(network, gpus, setup);
  std::vector<std::size_t> order(gpus.size());
  std::iota(order.begin(), order.end(), 0);
  StagePlan best{{}, {}, kNever};
  do {
    StagePlan made = partitioning.cut(order);
    if (made.slowest < best.slowest) best = std::move(made);
  } while (std::ranges::next_permutation(order).found);
  if (best.slowest < kNever) return best;
  Bytes memory = 0;
  for (const Gpu& gpu : gpus) memory += gpu.memory;
  return Error{Code::kNoMemory,
               fmt::format("{} in minibatches of {} does not fit into {} with {} together: smaller "
                           "minibatches, or more accelerators",
                           network.name, setup.batch, counted(gpus.size(), "accelerator"), format_bytes(memory))};
}

Waves play_waves(std::span<const double> paces, const WaveSetup& setup, double seconds) {
  const auto at = [](double value) { return Time(static_cast<std::int64_t>(value * 1e9)); };
  EventQueue<std::size_t> ends;  // of waves
  Waves waves{std::vector<std::uint64_t>(paces.size()), std::vector<double>(paces.size()), 0, 0};
  std::vector<Time> stopped(paces.size(), Time{-1});
  const auto begin = [&](std::size_t worker) {
    const double wave = paces[worker] * static_cast<double>(setup.minibatches) + setup.sync;
    ends.put(ends.now() + at(wave), worker);
  };
  for (std::size_t worker = 0; worker < paces.size(); ++worker) begin(worker);
  for (std::uint64_t count = 0; count < kMostWaves && !ends.is_empty() && ends.next() <= at(seconds); ++count) {
    const std::size_t worker = ends.take();
    ++waves.done[worker];
    stopped[worker] = ends.now();
    const std::uint64_t slowest = *std::ranges::min_element(waves.done);
    waves.farthest = std::max(waves.farthest, *std::ranges::max_element(waves.done) - slowest);
    // Whoever waits may go on when the slowest has come near enough.
    for (std::size_t other = 0; other < paces.size(); ++other) {
      if (stopped[other] < Time{0} || waves.done[other] > slowest + setup.distance) continue;
      waves.waited[other] += std::chrono::duration<double>(ends.now() - stopped[other]).count();
      stopped[other] = Time{-1};
      begin(other);
    }
  }
  const double done = static_cast<double>(std::accumulate(waves.done.begin(), waves.done.end(), std::uint64_t{0}));
  waves.minibatches_per_s = done * static_cast<double>(setup.minibatches) / seconds;
  return waves;
}

}  // namespace foreload
