#include "lab/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "plan/roster.h"

namespace foreload {
namespace {

using C = ClusterSetup;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr double kMostBytes = 1e18;
constexpr double kMostSeconds = 1e9;
constexpr std::size_t kLongestShown = 40;
constexpr double kLongestLength = 4e9;  // of a sample
constexpr double kMostSpread = 3;

constexpr auto kParameters = std::to_array<Parameter>({
    {"hosts", Quantity::kCount, &C::hosts, 1, Roster::kMostHosts, "Hosts"},
    {"learners", Quantity::kCount, &C::learners, 1, 1024, "Learners of a host"},
    {"cores", Quantity::kCount, &C::cores, 1, 4096, "Cores of a host, for prep"},
    {"memory", Quantity::kBytes, &C::memory, 0, kMostBytes, "Memory of a host"},
    {"cache", Quantity::kBytes, &C::cache, 0, kMostBytes, "Of it, room for samples"},
    {"disk", Quantity::kBytes, &C::disk, 0, kMostBytes, "Room for samples on a host's disk"},
    {"memory-rate", Quantity::kByteRate, &C::memory_rate, 1, kNoLimit, "Of a host's memory"},
    {"disk-rate", Quantity::kByteRate, &C::disk_rate, 1, kNoLimit, "Of a host's disk"},
    {"storage-rate", Quantity::kByteRate, &C::storage_rate, 1, kNoLimit, "Shared storage, for all hosts together"},
    {"storage-host-rate", Quantity::kByteRate, &C::storage_host_rate, 1, kNoLimit, "What it gives one host at most"},
    {"storage-requests", Quantity::kRate, &C::storage_requests, 1e-3, kNoLimit, "Requests per second of all hosts"},
    {"storage-latency", Quantity::kSeconds, &C::storage_latency, 0, 3600, "Of one request to storage"},
    {"storage-on-network", Quantity::kCount, &C::storage_on_network, 0, 1, "1: storage is reached through the network"},
    {"network-rate", Quantity::kByteRate, &C::network_rate, 1, kNoLimit, "Of a host's link, each direction"},
    {"bisection", Quantity::kByteRate, &C::bisection, 1, kNoLimit, "Between all hosts together"},
    {"network-latency", Quantity::kSeconds, &C::network_latency, 0, 3600, "Between two hosts"},
    {"samples", Quantity::kCount, &C::samples, 1, 4e9, "Samples of the dataset"},
    {"sample-bytes", Quantity::kBytes, &C::sample_bytes, 1, kLongestLength, "Mean length of a sample"},
    {"spread", Quantity::kShare, &C::spread, 0, kMostSpread, "Of lengths: deviation of their logarithm"},
    {"batch", Quantity::kCount, &C::batch, 1, 1 << 24, "Samples of a learner and step"},
    {"epochs", Quantity::kCount, &C::epochs, 1, 100'000, "Epochs"},
    {"seed", Quantity::kCount, &C::seed, 0, 1e18, "Of order, lengths and chance"},
    {"jobs", Quantity::kCount, &C::jobs, 1, 1024, "Jobs that train on the same data at once"},
    {"accelerator", Quantity::kRate, &C::accelerator, 1e-6, kNoLimit, "Samples per second of one learner"},
    {"prep", Quantity::kRate, &C::prep, 1e-6, kNoLimit, "Samples per second of one core"},
    {"gradient", Quantity::kBytes, &C::gradient, 0, kMostBytes, "Bytes reduced over learners after every step"},
    {"jitter", Quantity::kShare, &C::jitter, 0, 1, "Of a step's compute: its standard deviation"},
    {"stragglers", Quantity::kShare, &C::stragglers, 0, 1, "Share of hosts that are slow"},
    {"straggler-factor", Quantity::kRate, &C::straggler_factor, 1, 1e6, "How often their steps take as long"},
    {"prefetch", Quantity::kCount, &C::prefetch, 0, 4096, "Batches ahead of the learner; 0: the system's own"},
    {"echo", Quantity::kCount, &C::echo, 1, 1024, "Of the system echo: uses of a sample in an epoch"},
    {"reshuffle", Quantity::kShare, &C::reshuffle, 0, 1, "Of the system partial: share dealt anew"},
});

Error wrong(const Parameter& parameter, const std::string& what) {
  return {Code::kInvalid, fmt::format("{} ({}): {}", parameter.name, parameter.says, what)};
}

std::string shown(std::string_view text) {
  return std::string(text.substr(0, kLongestShown));
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return Error{Code::kInvalid, fmt::format("\"{}\" is no number", shown(text))};
  }
  return value;
}

Result<double> parse_quantity(Quantity quantity, std::string_view text) {
  if (text == "none" || text == "inf") return kNoLimit;
  if (quantity == Quantity::kSeconds && text.find_first_not_of("0123456789.e-+") != std::string_view::npos) {
    FORELOAD_ASSIGN(const Duration duration, parse_duration(text));
    return std::chrono::duration<double>(duration).count();
  }
  if (quantity == Quantity::kBytes || quantity == Quantity::kByteRate) {
    if (quantity == Quantity::kByteRate && text.ends_with("/s")) text.remove_suffix(2);
    FORELOAD_ASSIGN(const Bytes bytes, parse_bytes(text));
    return static_cast<double>(bytes);
  }
  return parse_number(text);
}

}  // namespace

std::span<const Parameter> parameters() {
  return kParameters;
}

const Parameter* find_parameter(std::string_view name) {
  const auto found = std::ranges::find_if(kParameters, [&](const Parameter& one) { return one.name == name; });
  return found == kParameters.end() ? nullptr : &*found;
}

double value_of(const ClusterSetup& setup, const Parameter& parameter) {
  return std::visit([&](auto field) { return static_cast<double>(setup.*field); }, parameter.field);
}

std::string text_of(const Parameter& parameter, double value) {
  if (std::isinf(value)) return "none";
  if (!(value >= 0 && value < kMostBytes)) return fmt::format("{:g}", value);  // what is refused is shown, too
  switch (parameter.quantity) {
    case Quantity::kCount:
      return fmt::format("{:.0f}", value);
    case Quantity::kBytes:
      return format_bytes(static_cast<Bytes>(value));
    case Quantity::kByteRate:
      return format_bytes(static_cast<Bytes>(value)) + "/s";
    case Quantity::kSeconds:
      return value < kMostSeconds ? format_duration(Duration(std::llround(value * 1e9))) : fmt::format("{:g} s", value);
    case Quantity::kRate:
    case Quantity::kShare:
      return fmt::format("{:g}", value);
  }
  return {};
}

Status set_value(ClusterSetup& setup, const Parameter& parameter, double value) {
  const bool whole = std::holds_alternative<std::uint64_t C::*>(parameter.field);
  if (std::isnan(value) || value < parameter.least || value > parameter.most || (whole && std::isinf(value))) {
    const std::string most = std::isinf(parameter.most) ? "no limit" : text_of(parameter, parameter.most);
    return wrong(parameter, fmt::format("{} is not from {} to {}", text_of(parameter, value),
                                        text_of(parameter, parameter.least), most));
  }
  if (whole && parameter.quantity == Quantity::kCount && value != std::floor(value)) {
    return wrong(parameter, fmt::format("{:g} is no whole number", value));
  }
  if (whole) {
    setup.*std::get<std::uint64_t C::*>(parameter.field) = static_cast<std::uint64_t>(value);
  } else {
    setup.*std::get<double C::*>(parameter.field) = value;
  }
  return {};
}

Status set_parameter(ClusterSetup& setup, std::string_view name, std::string_view text) {
  const Parameter* const parameter = find_parameter(name);
  if (parameter == nullptr) {
    return Error{Code::kInvalid,
                 fmt::format("\"{}\" is no parameter of a cluster: foreload simulate --help lists them", shown(name))};
  }
  auto value = parse_quantity(parameter->quantity, text);
  if (!value) return wrong(*parameter, value.error().message);
  return set_value(setup, *parameter, *value);
}

Status read_cluster(ClusterSetup& setup, std::string_view text, const std::string& file) {
  std::set<std::string, std::less<>> seen;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    one = trimmed(one.substr(0, one.find('#')));
    if (one.empty() || (one.front() == '[' && one.back() == ']')) continue;
    const auto fail = [&](const std::string& what) {
      return Error{Code::kInvalid, fmt::format("{}, line {}: {}", file, line, what)};
    };
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) return fail(fmt::format("\"{}\" is no \"name = value\"", shown(one)));
    std::string name(trimmed(one.substr(0, equals)));
    std::ranges::replace(name, '_', '-');
    if (!seen.insert(name).second) return fail(fmt::format("{} stands there twice", shown(name)));
    Status set = set_parameter(setup, name, trimmed(one.substr(equals + 1), " \t\r\n\""));
    if (!set) return fail(set.error().message);
  }
  return {};
}

Status check_cluster(const ClusterSetup& setup) {
  const auto fail = [](std::string what) { return Error{Code::kInvalid, std::move(what)}; };
  if (setup.cache > setup.memory) {
    return fail(fmt::format("a cache of {} does not fit into a memory of {}: make cache smaller or memory larger",
                            format_bytes(setup.cache), format_bytes(setup.memory)));
  }
  if (setup.learners % setup.jobs != 0) {
    return fail(fmt::format("{} can not be divided among {}: the learners of a host are a multiple of the jobs",
                            counted(setup.learners, "learner"), counted(setup.jobs, "job")));
  }
  if (setup.global_batch() > setup.samples) {
    return fail(
        fmt::format("a global batch of {} ({} of {} learners) is more than the dataset's {}: there would be no "
                    "whole step; make batch smaller",
                    setup.global_batch(), setup.batch, setup.job_world(), counted(setup.samples, "sample")));
  }
  if (setup.global_batch() > 1ull << 28) return fail("a global batch has at most 2^28 samples: make batch smaller");
  if (setup.world() > Roster::kMostLearners) {
    return fail(fmt::format("{} learners; at most {}", setup.world(), Roster::kMostLearners));
  }
  return {};
}

std::vector<std::uint32_t> sample_lengths(const ClusterSetup& setup) {
  std::vector<std::uint32_t> lengths(setup.samples, static_cast<std::uint32_t>(setup.sample_bytes));
  if (setup.spread == 0) return lengths;
  constexpr std::uint32_t kLengthOp = 0x1e57;
  constexpr int kUniforms = 12;  // whose sum, less 6, is nearly normal
  const double shift = setup.spread * setup.spread / 2;
  for (SampleId id = 0; id < setup.samples; ++id) {
    KeyedRandom random(setup.seed, 0, id, kLengthOp);
    double normal = -kUniforms / 2.0;
    for (int i = 0; i < kUniforms; ++i) normal += random.unit32() / 0x1p32;
    const double length = setup.sample_bytes * std::exp(setup.spread * normal - shift);
    lengths[id] = static_cast<std::uint32_t>(std::clamp(length, 1.0, kLongestLength));
  }
  return lengths;
}

}  // namespace foreload
