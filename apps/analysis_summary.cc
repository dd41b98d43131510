#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "analysis.h"
#include "base/text.h"
#include "help_layout.h"
#include "report/number.h"

namespace foreload {
namespace {

constexpr std::size_t kColumns = 79;
constexpr std::size_t kBar = 40;
constexpr std::size_t kMostRemedies = 4;
constexpr std::size_t kMostMissing = 3;

std::string rate_text(double rate) {
  if (!std::isfinite(rate)) return "any";
  return rate < 100 ? fmt::format("{:.1f}", rate) : format_count(static_cast<std::uint64_t>(std::lround(rate)));
}

// "busy #### prep ===== fetch ....": where the time of the accelerator goes.
std::string bar_of(const Stalls& stalls) {
  const auto busy = static_cast<std::size_t>(std::lround(stalls.busy * kBar));
  const auto prep = std::min(static_cast<std::size_t>(std::lround(stalls.prep * kBar)), kBar - busy);
  return std::string(busy, '#') + std::string(prep, '=') + std::string(kBar - busy - prep, '.');
}

void print_head(const Analysis& a, const Output& output) {
  output.line("{}: {}, {}, {}", a.uri, counted(a.measured.samples, "sample"), format_bytes(a.measured.bytes),
              form_name(a.setup.form));
  output.line("{}, {} each; budget {}, of which {} of the dataset are kept",
              a.setup.accelerators * a.setup.hosts > 1
                  ? fmt::format("{} on {}", counted(a.setup.accelerators * a.setup.hosts, "learner"),
                                counted(a.setup.hosts, "host"))
                  : std::string("1 learner"),
              counted(std::max(1u, a.setup.threads / a.setup.accelerators), "prep thread"), format_bytes(a.budget),
              percent(a.cached_share()));
}

const char* reason(Bound bound) {
  switch (bound) {
    case Bound::kFetch:
      return "fetching limits: storage and caches are too slow";
    case Bound::kPrep:
      return "prep limits: samples are not prepared fast enough";
    case Bound::kAccelerator:
      return "nothing stalls: the accelerator limits";
  }
  return "";
}

void print_prediction(const Analysis& a, const Output& output) {
  if (!a.later) {
    output.line("Too little could be measured to predict anything.");
    return;
  }
  const Stalls& stalls = a.later->stalls;
  const std::string first = a.first ? fmt::format("; first epoch {}", rate_text(a.first->stalls.rate)) : "";
  output.line("Predicted: {} samples/s ({} … {}){}", rate_text(stalls.rate), rate_text(a.later->low),
              rate_text(a.later->high), first);
  output.line("  {}", reason(stalls.bound));
  if (std::isfinite(a.later->accelerator)) {
    output.line("  [{}] # busy {}, = prep stall {}, . fetch stall {}", bar_of(stalls), percent(stalls.busy),
                percent(stalls.prep), percent(stalls.fetch));
  }
  if (!a.later->assumes.empty()) output.line("  Assumed: {}", a.later->assumes);
  output.line("  fetching could do {}, prep {}, the accelerator {}", rate_text(a.later->fetch),
              rate_text(a.later->prep), rate_text(a.later->accelerator));
}

// "storage 410 MB/s ±3 %, memory …": what the prediction is made of.
std::string figure_text(const char* name, const Figure& figure, double scale, const char* unit) {
  const double spread = std::max(figure.high - figure.value, figure.value - figure.low) / figure.value;
  return fmt::format("{} {} {} ±{}", name, rate_text(figure.value * scale), unit, percent(spread));
}

void print_measured(const Analysis& a, const Output& output) {
  const Measured& m = a.measured;
  std::vector<std::string> parts;
  const Figure storage = best_storage(m.storage);
  if (storage.known()) parts.push_back(figure_text("storage", storage, 1e-6, "MB/s"));
  if (m.page_cache.known()) parts.push_back(figure_text("page cache", m.page_cache, 1e-6, "MB/s"));
  if (m.memory.known()) parts.push_back(figure_text("memory", m.memory, 1e-6, "MB/s"));
  if (m.disk.known()) parts.push_back(figure_text("disk", m.disk, 1e-6, "MB/s"));
  for (const PrepAt& at : m.prep) {
    if (!at.samples_per_s.known()) continue;
    const std::string name = fmt::format("prep of {}", counted(at.threads, "thread"));
    parts.push_back(figure_text(name.c_str(), at.samples_per_s, 1, "samples/s"));
  }
  if (parts.empty()) return;
  std::istringstream lines(wrapped(fmt::format("Measured: {}", fmt::join(parts, ", ")), kColumns));
  for (std::string line; std::getline(lines, line);) output.line("{}", line);
}

void print_remedies(const Analysis& a, const Output& output) {
  if (!a.later) return;
  if (a.remedies.empty()) {
    const bool idle = a.later->stalls.bound == Bound::kAccelerator;
    output.line("{}", idle ? "Nothing has to be changed." : "Nothing that was measured would make it faster.");
    return;
  }
  output.line("What would help:");
  for (std::size_t i = 0; i < std::min(a.remedies.size(), kMostRemedies); ++i) {
    const Remedy& remedy = a.remedies[i];
    output.line("  {}. {}: {}{}", i + 1, remedy.title, gain_text(remedy.gain), remedy.no_stall ? ", no stall" : "");
    output.line("     {}", remedy.command.empty() ? remedy.says : remedy.command);
  }
}

std::string cost_text(const Cost& cost, const std::string& currency) {
  return fmt::format("{:.3g} {} per million samples ({}, {:.1f} GB, {}, {} busy)", cost.per_million_samples, currency,
                     counted(cost.setup.cores, "core"), cost.memory_gb, form_name(cost.setup.form), percent(cost.busy));
}

void print_prices(const Analysis& a, const Output& output) {
  if (!a.prices) return;
  const std::string& currency = a.prices->prices.currency;
  if (a.prices->here) output.line("Now: {}", cost_text(*a.prices->here, currency));
  if (a.prices->cheapest) {
    output.line("Cheapest that keeps it 95 % busy: {}", cost_text(*a.prices->cheapest, currency));
  } else {
    output.line("Cheapest: {}", a.measured.accelerator.known()
                                    ? "nothing that was measured keeps the accelerator 95 % busy"
                                    : "give --accelerator, otherwise nothing has to be kept busy");
  }
}

void print_check(const Analysis& a, const Output& output) {
  if (!a.check) return;
  output.line("Checked: {:<44} {:>9} {:>9} {:>7}", "", "predicted", "measured", "off");
  for (const CheckedPoint& point : *a.check) {
    output.line("  {:<51} {:>9} {:>9} {:>+5.1f} %", point.point, rate_text(point.predicted), rate_text(point.measured),
                100 * point.off());
  }
}

void print_missing(const Analysis& a, const Output& output) {
  std::vector<std::string> names;
  for (const auto& [what, why] : a.measured.missing) names.push_back(fmt::format("{} ({})", what, why));
  const std::size_t shown = a.later ? std::min(names.size(), kMostMissing) : names.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string line = fmt::format("Not measured: {}", names[i]);
    output.line("{}", a.later && line.size() > kColumns ? line.substr(0, kColumns - 3) + "..." : line);
  }
  if (shown < names.size()) output.line("Not measured: {} more things; --json lists them", names.size() - shown);
}

}  // namespace

void print_summary(const Analysis& analysis, const Output& output) {
  print_head(analysis, output);
  print_prediction(analysis, output);
  print_measured(analysis, output);
  print_remedies(analysis, output);
  print_prices(analysis, output);
  print_check(analysis, output);
  print_missing(analysis, output);
}

}  // namespace foreload
