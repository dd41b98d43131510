#include <cmath>

#include "base/hash.h"
#include "simulate_parts.h"

namespace foreload {
namespace {

constexpr double kHour = 3600;
constexpr double kGigabyte = 1e9;

// A rate without limit is null.
Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json bytes_json(const EpochReport& epoch) {
  Json bytes;
  for (const KeptAt place : {KeptAt::kMemory, KeptAt::kDisk, KeptAt::kPeer, KeptAt::kStorage})
    bytes[place_name(place)] = epoch.at(place).bytes;
  return bytes;
}

Json epoch_json(const EpochReport& epoch) {
  return {{"epoch", epoch.epoch},
          {"samples", epoch.samples},
          {"positions", epoch.positions},
          {"seconds", epoch.seconds},
          {"samples_per_s", finite(epoch.samples_per_s)},
          {"order_hash", hex16(epoch.order_hash)},
          {"bytes", bytes_json(epoch)},
          {"sent_bytes", epoch.sent.bytes},
          {"read_for_others_bytes", epoch.for_others.bytes},
          {"stall",
           {{"total", epoch.fetch_stall + epoch.prep_stall}, {"fetch", epoch.fetch_stall}, {"prep", epoch.prep_stall}}},
          {"sync", epoch.sync},
          {"utilisation", epoch.busy},
          {"wait_s", {{"median", epoch.wait_median}, {"p99", epoch.wait_p99}, {"longest", epoch.wait_longest}}}};
}

Json point_json(const SweepPoint& point, const ClusterSetup& setup, const Parameter& parameter,
                const std::optional<Prices>& prices) {
  const EpochReport& epoch = point.report.steady();
  ClusterSetup here = setup;
  (void)set_value(here, parameter, point.x);  // it was simulated
  const auto cost = epoch_cost(here, epoch, prices);
  return {{"x", point.x},
          {"samples_per_s", finite(epoch.samples_per_s)},
          {"utilisation", epoch.busy},
          {"fetch_stall", epoch.fetch_stall},
          {"prep_stall", epoch.prep_stall},
          {"sync", epoch.sync},
          {"epoch_s", epoch.seconds},
          {"storage_bytes", epoch.at(KeptAt::kStorage).bytes},
          {"network_bytes", epoch.sent.bytes},
          {"epoch_cost", cost ? Json(*cost) : Json()}};
}

}  // namespace

std::optional<double> epoch_cost(const ClusterSetup& setup, const EpochReport& epoch,
                                 const std::optional<Prices>& prices) {
  if (!prices) return std::nullopt;
  const double host = static_cast<double>(setup.cores) * prices->core_hour +
                      static_cast<double>(setup.memory) / kGigabyte * prices->gb_hour +
                      static_cast<double>(setup.learners) * prices->gpu_hour;
  return host * static_cast<double>(setup.hosts) * epoch.seconds / kHour;
}

Json setup_json(const ClusterSetup& setup) {
  Json json;
  for (const Parameter& parameter : parameters()) {
    const double value = value_of(setup, parameter);
    const bool whole = std::holds_alternative<std::uint64_t ClusterSetup::*>(parameter.field);
    json[parameter.name] = whole ? Json(static_cast<std::uint64_t>(value)) : finite(value);
  }
  return json;
}

Json simulated_json(const Simulated& run, const ClusterSetup& setup, const std::optional<Prices>& prices) {
  Json epochs = Json::array();
  for (const EpochReport& epoch : run.report.epochs) epochs.push_back(epoch_json(epoch));
  const auto cost = epoch_cost(setup, run.report.steady(), prices);
  return {{"name", run.system->name},
          {"says", run.system->says},
          {"seconds", run.report.seconds},
          {"events", run.report.events},
          {"record_hash", hex16(run.report.record_hash)},
          {"epoch_cost", cost ? Json(*cost) : Json()},
          {"epochs", std::move(epochs)}};
}

Json sweep_json(const SweepDone& sweep, const ClusterSetup& setup, const std::optional<Prices>& prices) {
  const Curve& curve = sweep.curve;
  Json points = Json::array();
  for (const SweepPoint& point : sweep.points)
    points.push_back(point_json(point, setup, *sweep.sweep.parameter, prices));
  return {{"name", curve.name},
          {"title", curve.title},
          {"system", sweep.system->name},
          {"x_unit", curve.unit},
          {"here", curve.here ? Json(*curve.here) : Json()},
          {"knee", curve.knee ? Json{{"x", curve.knee->x}, {"says", curve.knee->says}} : Json()},
          {"points", std::move(points)}};
}

}  // namespace foreload
