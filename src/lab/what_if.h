// What would be if: one thing of a setup is varied, everything else stays. Curves for what is a number, with the knee
// behind which more brings nothing; choices for what is not. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/model.h"

namespace foreload {

struct CurvePoint {
  double x = 0;
  Stalls stalls;
};

struct Knee {
  double x = 0;
  std::string says;
};

struct Curve {
  std::string name;   // "cache"
  std::string title;  // "Cache"
  std::string unit;   // of x
  std::vector<CurvePoint> points;
  std::optional<double> here;  // x of the setup as it is
  std::optional<Knee> knee;    // nothing: there is none within reach
};

struct Option {
  std::string label;
  Stalls stalls;
  bool here = false;
  bool measured = false;  // otherwise derived: the parts were measured, the whole was not
};

struct Choice {
  std::string name;
  std::string title;
  std::vector<Option> options;
};

// Only what the model knows enough for; nothing when it can not predict the setup that it was measured with.
std::vector<Curve> curves(const Model& model);
std::vector<Choice> choices(const Model& model);

// The smallest amounts with which the job is no slower than `rate` samples per second, all else as in `setup`. Nothing:
// no amount is enough.
std::optional<Bytes> smallest_cache(const Model& model, const JobSetup& setup, double rate);
std::optional<unsigned> smallest_cores(const Model& model, const JobSetup& setup, double rate);  // of a host
std::optional<double> smallest_storage(const Model& model, const JobSetup& setup, double rate);  // bytes per second
std::optional<unsigned> smallest_hosts(const Model& model, const JobSetup& setup, double busy);  // that share caches

// With a cache of this size, its own where there was only the page cache.
JobSetup with_cache(JobSetup setup, Bytes cache);
// With what was seen to come from memory: this share of a dataset of so many bytes, whoever keeps it and however.
JobSetup with_hits(JobSetup setup, double share, Bytes dataset);
// With as many cores, and as many prep threads, per host.
JobSetup with_cores(JobSetup setup, unsigned cores);
// How fast the setup would be if fetching, or prep, were not.
double without_fetch(const Prediction& prediction);
double without_prep(const Prediction& prediction);

}  // namespace foreload
