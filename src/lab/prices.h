// Prices: what cores, memory and accelerators cost by the hour, and the cheapest setup that keeps the accelerators
// busy. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "foreload/result.h"
#include "lab/model.h"

namespace foreload {

struct Prices {
  std::string currency = "";
  double core_hour = 0;
  double gb_hour = 0;   // of memory, 10^9 bytes
  double gpu_hour = 0;  // of an accelerator
};

// Lines "core_hour = 0.04", "currency = EUR"; '#' begins a comment. All four are needed. The error names `file` and the
// line.
Result<Prices> parse_prices(std::string_view text, const std::string& file);

struct Cost {
  JobSetup setup;
  double memory_gb = 0;  // of a host: cache, what the loader takes beside it, and the page cache that is counted on
  double per_hour = 0;   // of the whole job
  double per_million_samples = 0;
  double rate = 0;
  double busy = 0;
};

// `budget`: of a host's memory, with which it keeps so many bytes of samples. Nothing: the model can not predict this
// setup.
using Budget = std::function<Bytes(Bytes)>;
std::optional<Cost> cost_of(const Model& model, const Prices& prices, const JobSetup& setup, const Budget& budget);

inline constexpr double kBusyEnough = 0.95;
// The cheapest in cores, cache and form that keeps the accelerators 95 % busy, per sample. Nothing: none does, or there
// is no accelerator.
std::optional<Cost> cheapest(const Model& model, const Prices& prices, const Budget& budget);

}  // namespace foreload
