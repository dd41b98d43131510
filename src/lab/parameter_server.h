// Parameter server with placed layers (arXiv 1901.05803): a layer's parameters are kept by every worker, which
// sends gradients and gets parameters each step, or by the server, which then computes the layer for all workers and
// exchanges activations with them. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "foreload/types.h"
#include "lab/layers.h"

namespace foreload {

struct ServerSetup {
  std::uint64_t workers = 4;
  std::uint64_t batch = 32;     // of a worker
  double worker_flops = 10e12;  // per second
  double server_flops = 1e12;   // per second, for all workers together
  double link = 1.25e9;         // of the server, each direction: bytes per second
};

struct LayerPlacement {
  std::vector<bool> on_server;  // by layer
  double compute = 0;           // seconds of a step: of a worker
  double server = 0;            // of the server, for all workers
  double network = 0;           // of the server's link

  double step() const { return compute + server + network; }
};

// What it takes when layers are where `on_server` says. REQUIRES: as many as the network has.
LayerPlacement cost_of_placement(const Network& network, const ServerSetup& setup, std::vector<bool> on_server);
// The placement with the shortest step: exact, by dynamic programming over the layers.
LayerPlacement place_layers(const Network& network, const ServerSetup& setup);

}  // namespace foreload
