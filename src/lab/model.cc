// Per host: shares of the samples by origin, the rate of every origin, prep by cores; then the job is so many hosts.
// All parts are monotone in every figure, so the low end of a prediction follows from the low ends of the figures.
#include "lab/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace foreload {
namespace {

constexpr double kNothing = 1e-9;  // a share that is only rounding

double rate_of(const Figure& figure, End end) {
  return end == End::kLow ? figure.low : end == End::kHigh ? figure.high : figure.value;
}

// Of a figure that is a cost: its high end makes the low end of a rate.
double cost_of(const Figure& figure, End end) {
  return end == End::kLow ? figure.high : end == End::kHigh ? figure.low : figure.value;
}

double held(Bytes bytes, double whole) {
  return whole > 0 ? std::min(1.0, static_cast<double>(bytes) / whole) : 1;
}

double hits(double share, CachePolicy policy) {
  switch (policy) {
    case CachePolicy::kNeverEvict:
      return share;
    case CachePolicy::kLru:
      return lru_hits(share);
    case CachePolicy::kPageCache:
      return 0;
  }
  return 0;
}

double page_hits(double share, End end) {
  return end == End::kLow ? lru_hits(share) : end == End::kHigh ? std::min(share, 1.0) : page_cache_hits(share);
}

const PrepStage* find_stage(const Measured& measured, const char* name) {
  const auto found = std::ranges::find(measured.stages, name, &PrepStage::name);
  return found != measured.stages.end() && found->seconds.known() ? &*found : nullptr;
}

}  // namespace

const char* form_name(Form form) {
  switch (form) {
    case Form::kRaw:
      return "raw";
    case Form::kRecord:
      return "record";
    case Form::kCropAddressable:
      return "crop-addressable";
    case Form::kArrays:
      return "arrays";
  }
  return "";
}

const FormCost* FormCosts::find(Form form) const {
  const FormCost* cost = form == Form::kRaw               ? &raw
                         : form == Form::kRecord          ? &record
                         : form == Form::kCropAddressable ? &crop_addressable
                                                          : nullptr;
  return cost != nullptr && cost->known() ? cost : nullptr;
}

Figure read_share_at(std::span<const ReadAt> known, double bytes_per_s) {
  if (known.empty()) return {1, 1, 1, 1};
  const auto above = std::ranges::find_if(known, [&](const ReadAt& at) { return at.bytes_per_s >= bytes_per_s; });
  if (above == known.begin()) return known.front().share;
  if (above == known.end()) return known.back().share;
  const ReadAt& low = *(above - 1);
  const double part = std::log(bytes_per_s / low.bytes_per_s) / std::log(above->bytes_per_s / low.bytes_per_s);
  const auto mix = [&](double a, double b) { return a + (b - a) * part; };
  return {mix(low.share.value, above->share.value), mix(low.share.low, above->share.low),
          mix(low.share.high, above->share.high), std::min(low.share.windows, above->share.windows)};
}

Shares shares(const JobSetup& setup, double dataset_bytes, Epochs epochs, End end) {
  Shares from;
  const bool first = epochs == Epochs::kFirst;
  const bool keeps = setup.policy != CachePolicy::kPageCache && !first;
  const unsigned sharing = setup.partitioned ? std::max(setup.hosts, 1u) : 1;
  const double kept = keeps ? hits(held(setup.cache * sharing, dataset_bytes), setup.policy) : 0;
  const double per_host = static_cast<double>(setup.batch) * setup.accelerators;
  from.peers = kept * balanced_traffic(sharing, per_host);
  from.memory = kept - from.peers;
  double rest = 1 - kept;
  from.disk = std::min(rest, held(first ? setup.disk_before : setup.disk, dataset_bytes));
  rest -= from.disk;
  // What the loader keeps itself is not read again, and so the page cache forgets it.
  const Bytes room = setup.page_cache + (setup.policy == CachePolicy::kPageCache ? setup.cache * setup.caches : 0);
  if (!first && setup.page_cache > 0 && rest > kNothing)
    from.page_cache = rest * page_hits(held(room, rest * dataset_bytes), end);
  from.storage = rest - from.page_cache;
  return from;
}

Model::Model(Measured measured, const JobSetup& here, const FormCosts& forms)
    : measured_(std::move(measured)), here_(here), forms_(forms), prep_(measured_.prep) {}

double Model::mean_bytes() const {
  return measured_.samples == 0 ? 0 : static_cast<double>(measured_.bytes) / static_cast<double>(measured_.samples);
}

bool Model::knows(Form form) const {
  return form == here_.form || (forms_.find(form) != nullptr && forms_.find(here_.form) != nullptr);
}

bool Model::knows(DType dtype) const {
  return dtype == here_.dtype || (here_.dtype == DType::kF32 && dtype == DType::kU8 && output_cost(dtype) < 1);
}

// Bytes that are read for a sample that comes from storage. One that will be kept is read whole.
double Model::storage_read(const JobSetup& setup, double bytes_per_s, Epochs epochs, End end) const {
  const FormCost* there = forms_.find(setup.form);
  const FormCost* here = forms_.find(here_.form);
  const bool other = setup.form != here_.form && there != nullptr && here != nullptr;
  const double whole = mean_bytes() * (other ? there->stored_bytes / here->stored_bytes : 1);
  const auto& known = other ? there->read_share : measured_.read_share;
  const double part = std::min(1.0, cost_of(read_share_at(known, bytes_per_s), end));
  if (epochs == Epochs::kLater) return whole * part;
  const double kept = shares(setup, static_cast<double>(measured_.bytes), Epochs::kLater).memory;
  return whole * (kept + (1 - kept) * part);
}

// Samples per second. Not measured, it is at least what prep has been seen to take out of it.
double Model::memory_rate(End end) const {
  if (mean_bytes() <= 0) return kAnyRate;
  if (measured_.memory.known()) return rate_of(measured_.memory, end) / mean_bytes();
  return end == End::kHigh ? kAnyRate : rate_of(prep_.at(prep_.most_measured()), end);
}

std::optional<double> Model::fetch(const JobSetup& setup, const Shares& from, Epochs epochs, End end) const {
  // Of what is not known, nothing comes: it is not asked.
  const auto samples = [&](const Figure& figure) {
    return figure.known() && mean_bytes() > 0 ? rate_of(figure, end) / mean_bytes() : kAnyRate;
  };
  const Figure storage_figure = storage();
  const double storage_bytes = setup.storage ? *setup.storage : rate_of(storage_figure, end);
  const bool storage_known = setup.storage || storage_figure.known();
  // A page cache that was not measured is not counted on.
  const double from_storage = from.storage + (measured_.page_cache.known() ? 0 : from.page_cache);
  if (from_storage > kNothing && !storage_known) return std::nullopt;
  if (from.disk > kNothing && !measured_.disk.known()) return std::nullopt;
  if (from.peers > kNothing && !measured_.network.known()) return std::nullopt;
  const double read = storage_read(setup, storage_bytes, epochs, end);
  const std::array<FetchPath, 5> paths{
      {{from.memory, memory_rate(end)},
       {from.peers, samples(measured_.network)},
       {from.disk, samples(measured_.disk)},
       {measured_.page_cache.known() ? from.page_cache : 0, samples(measured_.page_cache)},
       {from_storage > kNothing ? from_storage : 0, read > 0 ? storage_bytes / read : kAnyRate}}};
  return fetch_rate(paths);
}

// Of f32, which was measured, the share of prep's time that this type takes: bytes are not normalised.
double Model::output_cost(DType dtype) const {
  if (dtype == here_.dtype || here_.dtype != DType::kF32 || dtype != DType::kU8) return 1;
  const PrepStage* normalise = find_stage(measured_, "normalise");
  double all = 0;
  for (const PrepStage& stage : measured_.stages) all += stage.name == "read" ? 0 : stage.seconds.value;
  if (normalise == nullptr || all <= 0) return 1;
  return std::clamp(1 - normalise->seconds.value / all, 0.1, 1.0);
}

// Time of prep for a sample, relative to the measured one.
double Model::prep_cost(const JobSetup& setup) const {
  const FormCost* there = forms_.find(setup.form);
  const FormCost* here = forms_.find(here_.form);
  const bool other = setup.form != here_.form && there != nullptr && here != nullptr;
  return (other ? there->cpu_seconds / here->cpu_seconds : 1) * output_cost(setup.dtype);
}

// Workers have the cores to themselves but for what reading takes of them.
double Model::prep_rate(const JobSetup& setup, double missed, End end) const {
  const unsigned cores = std::max(setup.cores, 1u);
  const unsigned working = std::clamp(setup.threads, 1u, cores);
  const double rate = rate_of(prep_.at(working), end) / prep_cost(setup);
  const PrepStage* read = find_stage(measured_, "read");
  const double reading = read != nullptr ? missed * cost_of(read->seconds, end) : 0;
  return std::min(rate, cores / (working / rate + reading));
}

std::optional<Model::Rates> Model::rates(const JobSetup& setup, Epochs epochs, End end) const {
  if (!prep_.known() || !knows(setup.form) || !knows(setup.dtype)) return std::nullopt;
  const Shares from = shares(setup, static_cast<double>(measured_.bytes), epochs, end);
  const auto fetched = fetch(setup, from, epochs, end);
  if (!fetched) return std::nullopt;
  const double hosts = setup.hosts;
  const double computed = measured_.accelerator.known() ? rate_of(measured_.accelerator, end) : kAnyRate;
  return Rates{*fetched * hosts, prep_rate(setup, 1 - from.memory, end) * hosts, computed * hosts * setup.accelerators};
}

std::optional<Prediction> Model::predict(const JobSetup& setup, Epochs epochs) const {
  const auto middle = rates(setup, epochs, End::kValue);
  const auto low = rates(setup, epochs, End::kLow);
  const auto high = rates(setup, epochs, End::kHigh);
  if (!middle || !low || !high) return std::nullopt;
  Prediction made;
  made.stalls = stalls(middle->fetch, middle->prep, middle->accelerator);
  made.low = std::min({low->fetch, low->prep, low->accelerator});
  made.high = std::min({high->fetch, high->prep, high->accelerator});
  made.fetch = middle->fetch;
  made.prep = middle->prep;
  made.accelerator = middle->accelerator;
  const Shares from = shares(setup, static_cast<double>(measured_.bytes), epochs);
  if (from.memory > kNothing && !measured_.memory.known()) {
    made.assumes = "the memory tier was not measured, and is taken to give no more than prep was seen to take from it";
  }
  return made;
}

}  // namespace foreload
