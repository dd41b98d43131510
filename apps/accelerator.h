// Accelerator: emulates the compute of a training step by sleeping, as MLPerf Storage does: no GPU is needed to see
// what a loader stalls.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class Accelerator {
 public:
  // "none", samples per second ("1200"), or a preset ("resnet50-a100"). The error lists the presets.
  static Result<Accelerator> parse(const std::string& text);
  static Accelerator none() { return Accelerator(0); }

  bool exists() const { return samples_per_second_ > 0; }
  double samples_per_second() const { return samples_per_second_; }
  // Takes as long as a step of so many samples, or until stop() says so; returns how long the step is.
  Duration step(std::uint64_t samples, const std::function<bool()>& stop = {}) const;

 private:
  explicit Accelerator(double samples_per_second) : samples_per_second_(samples_per_second) {}
  double samples_per_second_ = 0;
};

std::string accelerator_presets();  // "alexnet-v100, …"
std::string accelerator_rates();    // "alexnet-v100 2509, …": samples per second

}  // namespace foreload
