// Samples are at the workers. Where neighbours stand on different sides, activations go over the link, and their
// gradients back; a layer on the workers' side costs its gradients and its parameters. The server's link carries what
// all workers send.
#include "lab/parameter_server.h"

#include <algorithm>
#include <array>
#include <limits>

namespace foreload {
namespace {

constexpr double kForwardAndBack = 3;         // a backward pass is two forward ones
constexpr Bytes kInputBytes = 3 * 224 * 224;  // of a picture

class Costs {
 public:
  Costs(const Network& network, const ServerSetup& setup) : network_(network), setup_(setup) {}

  double compute(std::size_t layer) const {
    return kForwardAndBack * network_.layers[layer].flops * static_cast<double>(setup_.batch) / setup_.worker_flops;
  }
  double server(std::size_t layer) const {
    return kForwardAndBack * network_.layers[layer].flops * static_cast<double>(setup_.batch * setup_.workers) /
           setup_.server_flops;
  }
  double parameters(std::size_t layer) const { return over_link(network_.layers[layer].parameter_bytes()); }
  // Between `layer` and the one before it.
  double crossing(std::size_t layer) const {
    return over_link(setup_.batch * (layer == 0 ? kInputBytes : network_.layers[layer - 1].activation_bytes()));
  }

 private:
  double over_link(Bytes each) const { return 2.0 * static_cast<double>(each * setup_.workers) / setup_.link; }

  const Network& network_;
  const ServerSetup& setup_;
};

}  // namespace

LayerPlacement cost_of_placement(const Network& network, const ServerSetup& setup, std::vector<bool> on_server) {
  const Costs costs(network, setup);
  LayerPlacement made{.on_server = std::move(on_server)};
  bool before = false;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const bool here = made.on_server[i];
    if (here) {
      made.server += costs.server(i);
    } else {
      made.compute += costs.compute(i);
      made.network += costs.parameters(i);
    }
    if (here != before) made.network += costs.crossing(i);
    before = here;
  }
  return made;
}

LayerPlacement place_layers(const Network& network, const ServerSetup& setup) {
  const Costs costs(network, setup);
  const std::size_t count = network.layers.size();
  std::array<double, 2> best{0, std::numeric_limits<double>::infinity()};  // of the layers so far, by side
  std::vector<std::array<bool, 2>> came_from(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::array<double, 2> own{costs.compute(i) + costs.parameters(i), costs.server(i)};
    std::array<double, 2> next{};
    for (const std::size_t side : {0, 1}) {
      const double stay = best[side];
      const double cross = best[1 - side] + costs.crossing(i);
      came_from[i][side] = (cross < stay ? 1 - side : side) == 1;
      next[side] = std::min(stay, cross) + own[side];
    }
    best = next;
  }
  std::vector<bool> on_server(count);
  bool side = best[1] < best[0];
  for (std::size_t i = count; i-- > 0;) {
    on_server[i] = side;
    side = came_from[i][side ? 1 : 0];
  }
  return cost_of_placement(network, setup, std::move(on_server));
}

}  // namespace foreload
