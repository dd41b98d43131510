#include "analyze_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "progress.h"
#include "signals.h"

namespace foreload {
namespace {

constexpr double kEpochSeconds = 3;
constexpr std::uint64_t kLeastBatches = 8;
constexpr double kSlow = 0.5;  // of the storage rate that would be enough without a cache

struct Point {
  std::string name;
  double cached = 0;
  std::optional<double> storage;  // bytes per second; nothing: as it is
};

// One process and its memory: what is measured here.
LoaderOptions alone(LoaderOptions options) {
  options.world = 1;
  options.rank = options.local_world = 0;
  options.host.clear();
  options.peers.clear();
  options.disk.clear();
  options.record.clear();
  options.global_batch = 0;
  options.rewrite = Rewrite::kOff;  // it would be another dataset in every epoch
  return options;
}

class Check {
 public:
  Check(const PlannedJob& job, const Model& model) : job_(job), model_(model) {}

  Result<CheckedPoint> run(const Point& point) const;
  // All samples, or as many as take some seconds.
  std::uint64_t samples_for(double rate) const;
  JobSetup setup_of(const Point& point, Bytes bytes) const;

 private:
  const PlannedJob& job_;
  const Model& model_;
};

std::uint64_t Check::samples_for(double rate) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(kEpochSeconds * rate));
  return std::min(job_.source().size(), std::max(wanted, kLeastBatches * job_.options().batch));
}

JobSetup Check::setup_of(const Point& point, Bytes bytes) const {
  JobSetup setup = model_.here();
  setup.hosts = setup.accelerators = 1;  // learners share nothing here
  setup.threads = job_.threads();
  setup.partitioned = false;
  setup.disk = setup.disk_before = 0;
  setup.caches = 1;
  setup.storage = point.storage;
  if (point.storage) setup.page_cache = 0;
  return with_hits(setup, point.cached, bytes);
}

Result<CheckedPoint> Check::run(const Point& point) const {
  Measured measured = model_.measured();
  JobSetup setup = setup_of(point, measured.bytes);
  const auto whole = model_.predict(setup);
  if (!whole)
    return Error{Code::kInvalid, fmt::format("{}: nothing can be predicted, so nothing is checked", point.name)};
  LoaderOptions options = alone(job_.options());
  if (point.storage) options.storage = fmt::format("{}B/s", std::llround(*point.storage));
  RateOptions how;
  how.accelerator = measured.accelerator.known() ? measured.accelerator.value : 0;
  how.most_samples = samples_for(whole->stalls.rate);
  how.cached = point.cached;
  how.stop = [] { return caught_signal() != 0; };
  FORELOAD_ASSIGN(const MeasuredRate rate, measured_rate(options, how));
  // The prediction is for what ran: these samples, and what of them was kept.
  measured.samples = rate.samples;
  measured.bytes = rate.bytes;
  setup = setup_of({point.name, rate.cached, point.storage}, rate.bytes);
  const auto predicted = model_.of(measured).predict(setup);
  if (!predicted || !rate.samples_per_s.known())
    return Error{Code::kInvalid, fmt::format("{}: too little could be measured to check it", point.name)};
  return CheckedPoint{point.name, predicted->stalls.rate, rate.samples_per_s.value};
}

}  // namespace

Result<std::vector<CheckedPoint>> check_model(const PlannedJob& job, const Model& model) {
  const JobSetup& here = model.here();
  const auto now = model.predict(here);
  if (!now) return Error{Code::kInvalid, "too little could be measured to predict anything, so nothing is checked"};
  const double all = static_cast<double>(std::max<Bytes>(model.measured().bytes, 1));
  const double cached =
      here.policy == CachePolicy::kPageCache ? 0 : std::min(1.0, static_cast<double>(here.cache) / all);
  const double slow = kSlow * model.mean_bytes() * without_fetch(*now) / here.hosts;
  const std::string rate = fmt::format("storage at {:.0f} MB/s", slow / 1e6);
  const std::vector<Point> points{
      {"as it is", cached, {}}, {rate + ", nothing cached", 0, slow}, {rate + ", half cached", 0.5, slow}};
  Progress progress("checking", "points", points.size());
  const Check check(job, model);
  std::vector<CheckedPoint> checked;
  for (const Point& point : points) {
    progress.set(checked.size(), point.name);
    FORELOAD_ASSIGN(CheckedPoint done, check.run(point));
    checked.push_back(std::move(done));
  }
  return checked;
}

}  // namespace foreload
