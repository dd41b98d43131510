#include "lab/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/text.h"
#include "lab/what_if.h"

namespace foreload {
namespace {

constexpr const char* kWanted = "core_hour, gb_hour, gpu_hour and currency, as in \"core_hour = 0.04\"";
constexpr double kHighestPrice = 1e9;
constexpr std::size_t kLongestCurrency = 16;
constexpr double kHour = 3600;

Error wrong(const std::string& file, std::size_t line, const std::string& what) {
  return {Code::kInvalid, fmt::format("{}, line {}: {}: a prices file has {}", file, line, what, kWanted)};
}

Result<double> parse_price(std::string_view text, const std::string& file, std::size_t line) {
  double price = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), price);
  const bool whole = problem == std::errc() && end == text.data() + text.size();
  if (!whole || !std::isfinite(price) || price < 0 || price > kHighestPrice)
    return wrong(file, line, fmt::format("\"{}\" is no price", text.substr(0, 40)));
  return price;
}

// "key = value", of a line that is neither empty nor a comment.
Status take_line(Prices& prices, std::set<std::string>& seen, std::string_view text, const std::string& file,
                 std::size_t line) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return wrong(file, line, fmt::format("\"{}\"", text.substr(0, 40)));
  const std::string key(trimmed(text.substr(0, equals)));
  const std::string_view value = trimmed(text.substr(equals + 1));
  if (!seen.insert(key).second) return wrong(file, line, fmt::format("{} stands there twice", key.substr(0, 40)));
  if (key == "currency") {
    if (value.empty() || value.size() > kLongestCurrency) return wrong(file, line, "the currency is a short word");
    prices.currency = value;
    return {};
  }
  double* const price = key == "core_hour"  ? &prices.core_hour
                        : key == "gb_hour"  ? &prices.gb_hour
                        : key == "gpu_hour" ? &prices.gpu_hour
                                            : nullptr;
  if (price == nullptr) return wrong(file, line, fmt::format("\"{}\" is unknown", key.substr(0, 40)));
  FORELOAD_ASSIGN(*price, parse_price(value, file, line));
  return {};
}

// With the smallest cache that is enough.
std::optional<Cost> with_least_memory(const Model& model, const Prices& prices, JobSetup setup, double rate,
                                      const Budget& budget) {
  const auto cache = smallest_cache(model, setup, rate);
  if (!cache) return std::nullopt;
  setup = with_cache(setup, *cache);
  return cost_of(model, prices, setup, budget);
}

// Of a host: what of the page cache the prediction counts on. It is memory like any other.
Bytes page_cache_used(const Model& model, const JobSetup& setup) {
  if (!model.measured().page_cache.known() || setup.page_cache == 0) return 0;
  const Shares from = shares(setup, static_cast<double>(model.measured().bytes), Epochs::kLater, End::kHigh);
  return static_cast<Bytes>(from.page_cache * static_cast<double>(model.measured().bytes));
}

}  // namespace

Result<Prices> parse_prices(std::string_view text, const std::string& file) {
  Prices prices;
  std::set<std::string> seen;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, std::min(text.substr(0, end).find('#'), end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!content.empty()) FORELOAD_TRY(take_line(prices, seen, content, file, line));
  }
  for (const char* key : {"core_hour", "gb_hour", "gpu_hour", "currency"}) {
    if (!seen.contains(key))
      return Error{Code::kInvalid, fmt::format("{} has no {}: a prices file has {}", file, key, kWanted)};
  }
  return prices;
}

std::optional<Cost> cost_of(const Model& model, const Prices& prices, const JobSetup& setup, const Budget& budget) {
  const auto made = model.predict(setup);
  if (!made || made->stalls.rate <= 0 || !std::isfinite(made->stalls.rate)) return std::nullopt;
  Cost cost;
  cost.setup = setup;
  cost.memory_gb = static_cast<double>(budget(setup.cache) + page_cache_used(model, setup)) / 1e9;
  cost.per_hour = setup.hosts * (setup.cores * prices.core_hour + cost.memory_gb * prices.gb_hour +
                                 setup.accelerators * prices.gpu_hour);
  cost.rate = made->stalls.rate;
  cost.busy = made->stalls.busy;
  cost.per_million_samples = cost.per_hour / (kHour * cost.rate) * 1e6;
  return cost;
}

// More cores than are enough only cost: from the smallest number that can do it, up to the one with which prep does not
// limit at all.
std::optional<Cost> cheapest(const Model& model, const Prices& prices, const Budget& budget) {
  if (!model.measured().accelerator.known()) return std::nullopt;
  std::optional<Cost> best;
  for (const Form form : {Form::kRaw, Form::kRecord, Form::kCropAddressable, Form::kArrays}) {
    if (!model.knows(form)) continue;
    JobSetup all_cached = model.here();
    all_cached.form = form;
    all_cached.policy = CachePolicy::kNeverEvict;
    all_cached.cache = model.measured().bytes;
    all_cached.page_cache = 0;  // what is counted on is paid for
    const double whole = model.measured().accelerator.value * all_cached.accelerators * all_cached.hosts;
    const auto least = smallest_cores(model, all_cached, kBusyEnough * whole);
    const auto most = smallest_cores(model, all_cached, whole);
    if (!least) continue;
    for (unsigned cores = *least; cores <= std::max(*least, most.value_or(*least)) + 1; ++cores) {
      const auto cost = with_least_memory(model, prices, with_cores(all_cached, cores), kBusyEnough * whole, budget);
      if (cost && (!best || cost->per_million_samples < best->per_million_samples)) best = cost;
    }
  }
  return best;
}

}  // namespace foreload
