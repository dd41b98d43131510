#include "lab/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"

namespace foreload {
namespace {

constexpr unsigned kCachePoints = 20;  // beside zero
constexpr unsigned kMostCores = 1024;  // of a host, that anybody has
constexpr unsigned kMostHosts = 256;
constexpr unsigned kStorageOctaves = 3;  // to both sides
constexpr double kEnough = 1 - 1e-6;     // of a rate: the rest is rounding
constexpr double kNoStall = 0.005;       // of the time
constexpr double kLeastStorage = 1e3;    // bytes per second: below, nothing is read but by rounding
constexpr double kMostStorage = 1e14;
constexpr double kSameStorage = 1 + 1e-9;
constexpr double kGigabyte = 1e9;
constexpr double kMegabyte = 1e6;

using Change = std::function<void(JobSetup&, double x)>;

void add_point(Curve& curve, const Model& model, const Change& change, double x) {
  JobSetup setup = model.here();
  change(setup, x);
  if (const auto made = model.predict(setup)) curve.points.push_back({x, made->stalls});
}

// At these places, where it is, and at the knee.
void trace(Curve& curve, const Model& model, const Change& change, std::vector<double> places) {
  if (curve.here) places.push_back(*curve.here);
  if (curve.knee) places.push_back(curve.knee->x);
  std::ranges::sort(places);
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); };
  places.erase(std::unique(places.begin(), places.end(), same), places.end());
  for (const double x : places) add_point(curve, model, change, x);
}

double rate_of(const Model& model, const JobSetup& setup) {
  const auto made = model.predict(setup);
  return made ? made->stalls.rate : 0;
}

// The smallest whole number from `least` to `most` for which `enough` holds. REQUIRES: it holds for all above it.
template <typename Enough>
std::optional<std::uint64_t> first_where(std::uint64_t least, std::uint64_t most, const Enough& enough) {
  if (!enough(most)) return std::nullopt;
  while (least < most) {
    const std::uint64_t middle = least + (most - least) / 2;
    if (enough(middle)) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return most;
}

// The smallest cache for which `enough` holds of the prediction.
template <typename Enough>
std::optional<Bytes> smallest_cache_where(const Model& model, const JobSetup& setup, const Enough& enough) {
  const auto holds = [&](std::uint64_t bytes) {
    const auto made = model.predict(with_cache(setup, bytes));
    return made && enough(*made);
  };
  const Bytes all = model.measured().bytes;
  if (const auto found = first_where(0, all, holds)) return found;
  // Memory that is slow itself: beyond C / (C + S), more of it is slower.
  const double memory = model.measured().memory.value;
  const double storage = setup.storage.value_or(model.storage().value);
  if (memory <= 0 || storage <= 0) return std::nullopt;
  return first_where(0, static_cast<Bytes>(static_cast<double>(all) * memory / (memory + storage)), holds);
}

// A cache also saves the CPU time of reading, which is no fetch stall.
std::string cache_words(const Model& model, Bytes enough) {
  const Bytes all = model.measured().bytes;
  if (enough > 0) {
    return fmt::format("from {} on, {:.0f} % of the dataset, no fetch stall in later epochs", format_bytes(enough),
                       100 * static_cast<double>(enough) / static_cast<double>(all));
  }
  const double none = rate_of(model, with_cache(model.here(), 0));
  return rate_of(model, with_cache(model.here(), all)) > none / (1 - kNoStall)
             ? "storage alone is fast enough: the cache only saves the CPU time of reading"
             : "storage alone is fast enough: the cache brings nothing";
}

Curve cache_curve(const Model& model) {
  const JobSetup& here = model.here();
  const auto all = static_cast<double>(model.measured().bytes);
  Curve curve{"cache", here.hosts > 1 ? "Cache of a host" : "Cache", "GB", {}, {}, {}};
  curve.here = static_cast<double>(std::min(here.cache, model.measured().bytes)) / kGigabyte;
  const auto no_stall = [](const Prediction& made) { return made.stalls.fetch <= kNoStall; };
  if (const auto enough = smallest_cache_where(model, here, no_stall))
    curve.knee = Knee{static_cast<double>(*enough) / kGigabyte, cache_words(model, *enough)};
  std::vector<double> places;
  for (unsigned i = 0; i <= kCachePoints; ++i) places.push_back(all / kGigabyte * i / kCachePoints);
  trace(
      curve, model,
      [](JobSetup& setup, double x) { setup = with_cache(setup, static_cast<Bytes>(std::ceil(x * kGigabyte))); },
      places);
  return curve;
}

Curve cores_curve(const Model& model, const Prediction& now) {
  const JobSetup& here = model.here();
  const unsigned learners = here.accelerators;
  Curve curve{"cores", "Cores per accelerator", "cores", {}, {}, {}};
  curve.here = static_cast<double>(std::min(here.threads, here.cores)) / learners;
  unsigned most = std::max(8u, 2 * here.cores / learners);
  if (const auto enough = smallest_cores(model, here, without_prep(now)); enough && std::isfinite(without_prep(now))) {
    const unsigned each = (*enough + learners - 1) / learners;
    most = std::max(most, each + 2);
    const bool fetch = now.fetch < now.accelerator;
    curve.knee =
        Knee{static_cast<double>(each), fmt::format("{} {} enough: with more, {} limits", counted(each, "core"),
                                                    each == 1 ? "is" : "are", fetch ? "fetching" : "the accelerator")};
  }
  std::vector<double> places;
  const unsigned step = std::max(1u, most / 32);
  for (unsigned cores = 1; cores <= most; cores += step) places.push_back(cores);
  trace(
      curve, model,
      [&](JobSetup& setup, double x) { setup = with_cores(setup, static_cast<unsigned>(std::lround(x * learners))); },
      places);
  return curve;
}

Curve storage_curve(const Model& model, const Prediction& now) {
  const Figure measured = model.storage();
  Curve curve{"storage", "Storage rate", "MB/s", {}, {}, {}};
  if (!measured.known()) return curve;
  const double base = measured.value / kMegabyte;
  curve.here = base;
  if (const auto enough = smallest_storage(model, model.here(), without_fetch(now));
      enough && *enough > kLeastStorage) {
    curve.knee = Knee{*enough / kMegabyte,
                      fmt::format("from {:.0f} MB/s on, no fetch stall in later epochs", *enough / kMegabyte)};
  }
  std::vector<double> places;
  for (int half = -2 * static_cast<int>(kStorageOctaves); half <= 2 * static_cast<int>(kStorageOctaves); ++half)
    places.push_back(base * std::exp2(half / 2.0));
  trace(
      curve, model, [](JobSetup& setup, double x) { setup.storage = x * kMegabyte; }, places);
  return curve;
}

Curve accelerators_curve(const Model& model, const Prediction& now) {
  const JobSetup& here = model.here();
  Curve curve{"accelerators", "Accelerators per host", "accelerators", {}, {}, {}};
  if (!std::isfinite(now.accelerator)) return curve;
  curve.here = here.accelerators;
  const double each = now.accelerator / here.accelerators;
  const double most = std::floor(std::min(now.fetch, now.prep) / each / kEnough);
  if (most >= 1 && most <= 64) {
    curve.knee = Knee{
        most, fmt::format("this host keeps up to {} busy", counted(static_cast<std::uint64_t>(most), "accelerator"))};
  }
  std::vector<double> places;
  const auto last = static_cast<unsigned>(std::clamp(most + 2, 8.0, 64.0));
  for (unsigned count = 1; count <= last; ++count) places.push_back(count);
  trace(
      curve, model, [](JobSetup& setup, double x) { setup.accelerators = static_cast<unsigned>(x); }, places);
  return curve;
}

Curve hosts_curve(const Model& model) {
  const JobSetup& here = model.here();
  Curve curve{"hosts", "Hosts that share their caches", "hosts", {}, {}, {}};
  curve.here = here.hosts;
  JobSetup one = here;
  one.partitioned = true;
  one.hosts = 1;
  const auto alone = model.predict(one);
  if (alone && alone->stalls.fetch > 1 - kEnough) {
    const double busy = without_fetch(*alone);
    if (const auto enough = smallest_hosts(model, one, busy)) {
      curve.knee = Knee{static_cast<double>(*enough),
                        fmt::format("the caches of {} together end the fetch stall", counted(*enough, "host"))};
    }
  }
  std::vector<double> places{1, 2, 3, 4, 6, 8, 12, 16};
  trace(
      curve, model,
      [](JobSetup& setup, double x) {
        setup.hosts = static_cast<unsigned>(x);
        setup.partitioned = true;
      },
      places);
  return curve;
}

void add_option(Choice& choice, const Model& model, const JobSetup& setup, const std::string& label, bool measured) {
  const auto made = model.predict(setup);
  if (made) choice.options.push_back({label, made->stalls, setup == model.here(), measured});
}

Choice form_choice(const Model& model) {
  Choice choice{"form", "Raw files, records, crop-addressable records", {}};
  for (const Form form : {Form::kRaw, Form::kRecord, Form::kCropAddressable}) {
    if (!model.knows(form) || model.here().form == Form::kArrays) continue;
    JobSetup setup = model.here();
    setup.form = form;
    add_option(choice, model, setup, form_name(form), true);
  }
  return choice;
}

Choice cache_choice(const Model& model) {
  Choice choice{"cache", "Who keeps samples in memory", {}};
  const JobSetup& here = model.here();
  const auto with = [&](CachePolicy policy, bool partitioned, unsigned hosts) {
    JobSetup setup = here;
    setup.policy = policy;
    setup.partitioned = partitioned;
    setup.hosts = hosts;
    return setup;
  };
  JobSetup page = with(CachePolicy::kPageCache, false, here.hosts);
  if (page.page_cache == 0 && here.policy != CachePolicy::kPageCache) page.cache = 0;  // reads go past it
  add_option(choice, model, page, page.page_cache == 0 ? "nobody" : "the system's page cache", false);
  add_option(choice, model, with(CachePolicy::kLru, here.partitioned, here.hosts), "least recently used goes", false);
  add_option(choice, model, with(CachePolicy::kNeverEvict, false, here.hosts), "chosen by the seed, never evicted",
             true);
  const unsigned hosts = std::max(here.hosts, 2u);
  add_option(choice, model, with(CachePolicy::kNeverEvict, true, hosts), fmt::format("shared by {} hosts", hosts),
             false);
  return choice;
}

Choice output_choice(const Model& model) {
  Choice choice{"output", "Type of the batches", {}};
  for (const DType dtype : {DType::kU8, DType::kF32}) {
    if (!model.knows(dtype)) continue;
    JobSetup setup = model.here();
    setup.dtype = dtype;
    add_option(choice, model, setup, dtype_name(dtype), dtype == model.here().dtype);
  }
  return choice;
}

}  // namespace

double without_fetch(const Prediction& prediction) {
  return std::min(prediction.prep, prediction.accelerator);
}

double without_prep(const Prediction& prediction) {
  return std::min(prediction.fetch, prediction.accelerator);
}

JobSetup with_cache(JobSetup setup, Bytes cache) {
  // What it takes, the page cache loses. Where reads go past it, it has nothing and gets nothing.
  const Bytes all = setup.page_cache + setup.cache * setup.caches;
  if (setup.page_cache > 0) setup.page_cache = all - std::min(all, cache * setup.caches);
  setup.cache = cache;
  if (setup.policy == CachePolicy::kPageCache) setup.policy = CachePolicy::kNeverEvict;
  return setup;
}

JobSetup with_hits(JobSetup setup, double share, Bytes dataset) {
  setup.cache = static_cast<Bytes>(std::ceil(share * static_cast<double>(dataset)));
  setup.policy = setup.cache > 0 ? CachePolicy::kNeverEvict : CachePolicy::kPageCache;
  return setup;
}

JobSetup with_cores(JobSetup setup, unsigned cores) {
  setup.cores = setup.threads = std::max(cores, 1u);
  return setup;
}

std::optional<Bytes> smallest_cache(const Model& model, const JobSetup& setup, double rate) {
  return smallest_cache_where(model, setup, [&](const Prediction& made) { return made.stalls.rate >= kEnough * rate; });
}

std::optional<unsigned> smallest_cores(const Model& model, const JobSetup& setup, double rate) {
  const auto found = first_where(1, kMostCores, [&](std::uint64_t cores) {
    return rate_of(model, with_cores(setup, static_cast<unsigned>(cores))) >= kEnough * rate;
  });
  if (!found) return std::nullopt;
  return static_cast<unsigned>(*found);
}

// By halving: how much is read of a sample depends on the rate, too.
std::optional<double> smallest_storage(const Model& model, const JobSetup& setup, double rate) {
  if (!std::isfinite(rate)) return std::nullopt;
  const auto enough = [&](double storage) {
    JobSetup other = setup;
    other.storage = storage;
    return rate_of(model, other) >= kEnough * rate;
  };
  if (!enough(kMostStorage)) return std::nullopt;
  if (enough(kLeastStorage)) return 0;
  double low = kLeastStorage;
  double high = kMostStorage;
  while (high > kSameStorage * low) {
    const double middle = std::sqrt(low * high);
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

std::optional<unsigned> smallest_hosts(const Model& model, const JobSetup& setup, double rate) {
  const auto found = first_where(1, kMostHosts, [&](std::uint64_t hosts) {
    JobSetup other = setup;
    other.partitioned = true;
    other.hosts = static_cast<unsigned>(hosts);
    return rate_of(model, other) >= kEnough * rate * static_cast<double>(hosts) / setup.hosts;
  });
  if (!found) return std::nullopt;
  return static_cast<unsigned>(*found);
}

std::vector<Curve> curves(const Model& model) {
  const auto now = model.predict(model.here());
  if (!now) return {};
  std::vector<Curve> made{cache_curve(model), cores_curve(model, *now), storage_curve(model, *now),
                          accelerators_curve(model, *now), hosts_curve(model)};
  std::erase_if(made, [](const Curve& curve) { return curve.points.size() < 2; });
  return made;
}

std::vector<Choice> choices(const Model& model) {
  if (!model.predict(model.here())) return {};
  std::vector<Choice> made{form_choice(model), cache_choice(model), output_choice(model)};
  std::erase_if(made, [](const Choice& choice) { return choice.options.size() < 2; });
  return made;
}

}  // namespace foreload
