#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis.h"
#include "base/hash.h"
#include "base/machine.h"

namespace foreload {
namespace {

// What is unlimited or unknown has no number.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json stalls_json(const Stalls& stalls, bool has_accelerator) {
  const Json busy = has_accelerator ? Json(stalls.busy) : Json();
  return {{"samples_per_s", number(stalls.rate)},
          {"bound", bound_name(stalls.bound)},
          {"utilisation", busy},
          {"busy", busy},
          {"fetch_stall", has_accelerator ? Json(stalls.fetch) : Json()},
          {"prep_stall", has_accelerator ? Json(stalls.prep) : Json()}};
}

class MeasuredRows {
 public:
  void add(const std::string& name, const char* group, const Figure& figure, double scale, const char* unit,
           const std::string& how) {
    if (!figure.known()) return;
    rows_.push_back({{"name", name},
                     {"group", group},
                     {"value", figure.value * scale},
                     {"low", figure.low * scale},
                     {"high", figure.high * scale},
                     {"unit", unit},
                     {"windows", figure.windows},
                     {"how", how}});
  }
  Json take() { return std::move(rows_); }

 private:
  Json rows_ = Json::array();
};

std::string how_of_stage(const std::string& stage) {
  if (stage == "read") return "CPU of reading a sample, per sample";
  if (stage == "collate") return "what the loader takes of a core beside the other stages, per sample";
  return "on one core, per sample: the difference that the stage makes";
}

Json measured_json(const Measured& m) {
  constexpr double kMega = 1e-6;
  MeasuredRows rows;
  for (const StorageAt& at : m.storage) {
    rows.add(fmt::format("storage, {} at once", at.depth), "storage", at.bytes_per_s, kMega, "MB/s",
             "whole samples in random order, " + m.storage_how);
  }
  rows.add("storage, in a row", "storage", m.sequential, kMega, "MB/s", "samples one after the other");
  const Figure storage = best_storage(m.storage);
  if (storage.known() && !m.read_share.empty()) {
    rows.add("read of a sample that is not kept", "storage", read_share_at(m.read_share, storage.value), 100, "%",
             "share of its bytes that its crop needs, where the second request for it pays");
  }
  rows.add("page cache", "cache", m.page_cache, kMega, "MB/s", "the same files again");
  rows.add("memory tier", "cache", m.memory, kMega, "MB/s", "samples from memory into batches, as they are");
  rows.add("disk tier", "cache", m.disk, kMega, "MB/s", "random samples of the disk cache");
  rows.add("between hosts", "network", m.network, kMega, "MB/s", "as given");
  for (const PrepStage& stage : m.stages)
    rows.add(stage.name, "prep", stage.seconds, 1e3, "ms", how_of_stage(stage.name));
  for (const PrepAt& at : m.prep) {
    rows.add(fmt::format("prep, {} {}", at.threads, at.threads == 1 ? "thread" : "threads"), "prep", at.samples_per_s,
             1, "samples/s", "the whole chain behind a loader whose samples are in memory");
  }
  rows.add("accelerator", "accelerator", m.accelerator, 1, "samples/s", "as given");
  return rows.take();
}

Json dataset_json(const Analysis& a) {
  const Measured& m = a.measured;
  return {{"uri", a.uri},
          {"fingerprint", hex16(a.fingerprint)},
          {"samples", m.samples},
          {"bytes", m.bytes},
          {"mean_bytes", m.samples > 0 ? m.bytes / m.samples : 0},
          {"sizes",
           {{"smallest", m.sizes.smallest},
            {"p10", m.sizes.p10},
            {"median", m.sizes.median},
            {"p90", m.sizes.p90},
            {"p99", m.sizes.p99},
            {"largest", m.sizes.largest}}},
          {"form", form_name(a.setup.form)}};
}

Json job_json(const Analysis& a) {
  return {{"accelerator", a.accelerator},
          {"accelerators", a.setup.accelerators},
          {"hosts", a.setup.hosts},
          {"threads", a.setup.threads},
          {"memory_bytes", a.budget},
          {"cached_share", a.cached_share()},
          {"dtype", dtype_name(a.setup.dtype)},
          {"chain", a.chain}};
}

Json prediction_json(const Analysis& a) {
  if (!a.later) return Json();
  const bool has_accelerator = std::isfinite(a.later->accelerator);
  const Json whole = stalls_json(a.later->stalls, has_accelerator);
  Json json{{"samples_per_s", whole["samples_per_s"]}, {"low", number(a.later->low)}, {"high", number(a.later->high)}};
  json.update(whole);
  json["assumes"] = a.later->assumes.empty() ? Json() : Json(a.later->assumes);
  json["first_epoch"] = a.first ? stalls_json(a.first->stalls, has_accelerator) : Json();
  json["fetch_samples_per_s"] = number(a.later->fetch);
  json["prep_samples_per_s"] = number(a.later->prep);
  json["accelerator_samples_per_s"] = number(a.later->accelerator);
  return json;
}

Json curve_json(const Curve& curve, bool has_accelerator) {
  Json json{{"name", curve.name}, {"title", curve.title}, {"x_unit", curve.unit}, {"points", Json::array()}};
  for (const CurvePoint& point : curve.points) {
    Json row = stalls_json(point.stalls, has_accelerator);
    row.erase("busy");
    row["x"] = point.x;
    json["points"].push_back(std::move(row));
  }
  json["here"] = curve.here ? Json(*curve.here) : Json();
  json["knee"] = curve.knee ? Json{{"x", curve.knee->x}, {"says", curve.knee->says}} : Json();
  return json;
}

Json choice_json(const Choice& choice, bool has_accelerator) {
  Json json{{"name", choice.name}, {"title", choice.title}, {"options", Json::array()}};
  for (const Option& option : choice.options) {
    Json row{{"label", option.label}};
    row.update(stalls_json(option.stalls, has_accelerator));
    row.erase("busy");
    row["here"] = option.here;
    row["measured"] = option.measured;
    json["options"].push_back(std::move(row));
  }
  return json;
}

Json remedies_json(const std::vector<Remedy>& remedies) {
  Json json = Json::array();
  for (const Remedy& remedy : remedies) {
    json.push_back({{"title", remedy.title},
                    {"gain", remedy.gain},
                    {"samples_per_s", remedy.rate},
                    {"no_stall", remedy.no_stall},
                    {"says", remedy.says},
                    {"command", remedy.command.empty() ? Json() : Json(remedy.command)},
                    {"python", remedy.python.empty() ? Json() : Json(remedy.python)}});
  }
  return json;
}

Json form_json(const FormRun& run) {
  if (!run.known()) return Json();
  return {{"requests", run.requests},
          {"bytes", run.bytes},
          {"cpu_seconds", run.cpu_seconds},
          {"samples_per_s", run.samples_per_s}};
}

Json forms_json(const std::optional<Forms>& forms) {
  if (!forms) return Json();
  return {{"raw", form_json(forms->raw)},
          {"record", form_json(forms->record)},
          {"crop_addressable", form_json(forms->crop_addressable)},
          {"samples", forms->samples}};
}

Json cost_json(const std::optional<Cost>& cost) {
  if (!cost) return Json();
  return {{"cores", cost->setup.cores},
          {"memory_gb", cost->memory_gb},
          {"form", form_name(cost->setup.form)},
          {"per_hour", cost->per_hour},
          {"per_million_samples", cost->per_million_samples},
          {"samples_per_s", cost->rate},
          {"utilisation", cost->busy}};
}

Json check_json(const std::optional<std::vector<CheckedPoint>>& check) {
  if (!check) return Json();
  Json json = Json::array();
  for (const CheckedPoint& point : *check) {
    json.push_back(
        {{"point", point.point}, {"predicted", point.predicted}, {"measured", point.measured}, {"off", point.off()}});
  }
  return json;
}

}  // namespace

double Analysis::cached_share() const {
  if (measured.bytes == 0) return 0;
  return std::min(1.0, static_cast<double>(setup.cache) / static_cast<double>(measured.bytes));
}

Json to_json(const Analysis& a) {
  const bool has_accelerator = a.measured.accelerator.known();
  Json json{{"version", FORELOAD_VERSION}};
  json["dataset"] = dataset_json(a);
  json["machine"] = {{"cores", usable_cores()}, {"memory_bytes", a.machine_memory}, {"cpu", a.cpu}};
  json["job"] = job_json(a);
  json["measured"] = measured_json(a.measured);
  json["missing"] = Json::array();
  for (const auto& [what, why] : a.measured.missing) json["missing"].push_back({{"what", what}, {"why", why}});
  json["prediction"] = prediction_json(a);
  json["what_if"] = Json::array();
  for (const Curve& curve : a.curves) json["what_if"].push_back(curve_json(curve, has_accelerator));
  json["choices"] = Json::array();
  for (const Choice& choice : a.choices) json["choices"].push_back(choice_json(choice, has_accelerator));
  json["remedies"] = remedies_json(a.remedies);
  json["raw_against_record"] = forms_json(a.forms);
  json["prices"] = !a.prices ? Json()
                             : Json{{"currency", a.prices->prices.currency},
                                    {"here", cost_json(a.prices->here)},
                                    {"cheapest", cost_json(a.prices->cheapest)}};
  json["check"] = check_json(a.check);
  json["seconds"] = a.seconds;
  json["bytes_read"] = a.bytes_read;
  return json;
}

}  // namespace foreload
