// Layers: networks as tables of what each layer has to compute, keep and send, counted from their definitions. What
// trainers beyond plain data parallelism are planned by.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

struct Layer {
  std::string name;
  std::uint64_t parameters = 0;   // numbers
  std::uint64_t activations = 0;  // numbers that leave it, for one sample
  double flops = 0;               // forward, for one sample; a multiplication and an addition are two

  Bytes parameter_bytes() const { return 4 * parameters; }
  Bytes activation_bytes() const { return 4 * activations; }
};

struct Network {
  std::string name;
  std::vector<Layer> layers;  // in order; a residual block is one, because it can not be cut

  std::uint64_t parameters() const;
  double flops() const;
};

// alexnet, vgg19, resnet50, resnet152, as torchvision defines them, for pictures of 224 × 224. kNotFound lists them.
Result<Network> find_network(std::string_view name);

}  // namespace foreload
