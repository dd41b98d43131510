#include "lab/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/random.h"
#include "base/text.h"
#include "lab/cluster_run.h"

namespace foreload {
namespace {

constexpr std::uint32_t kFaultOp = 0xfa17;
constexpr auto kKinds = std::to_array(
    {FaultKind::kSlowHost, FaultKind::kSlowLink, FaultKind::kSlowStorage, FaultKind::kDeadLink, FaultKind::kDeadHost});
constexpr double kLongest = 1e7;  // seconds
constexpr const char* kForm = "faults are written as dead-host:3@10s-25s or slow-link:0@5s-8s*4";

Error wrong(std::string_view text, const std::string& what) {
  return {Code::kInvalid, fmt::format("fault \"{}\": {}; {}", text.substr(0, 60), what, kForm)};
}

template <typename Number>
bool parse_into(std::string_view text, Number& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

// Cuts off what follows `mark`; empty: there is none.
std::string_view cut_after(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

}  // namespace

const char* fault_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kSlowHost:
      return "slow-host";
    case FaultKind::kSlowLink:
      return "slow-link";
    case FaultKind::kSlowStorage:
      return "slow-storage";
    case FaultKind::kDeadLink:
      return "dead-link";
    case FaultKind::kDeadHost:
      return "dead-host";
  }
  return "";
}

Result<Fault> parse_fault(std::string_view text, const ClusterSetup& setup) {
  Fault fault;
  std::string_view rest = text;
  const std::string_view factor = cut_after(rest, '*');
  if (!factor.empty() && (!parse_into(factor, fault.factor) || !(fault.factor >= 1) || fault.factor > 1e6))
    return wrong(text, "the factor is a number from 1 to 1e6");
  const std::string_view until = cut_after(rest, '-');
  const std::string_view at = cut_after(rest, '@');
  const auto begin = parse_duration(at);
  const auto end = parse_duration(until);
  if (!begin || !end) return wrong(text, "it says neither when it begins nor when it ends");
  fault.at = std::chrono::duration<double>(*begin).count();
  fault.until = std::chrono::duration<double>(*end).count();
  if (fault.until <= fault.at || fault.until > kLongest) return wrong(text, "it ends before it begins");
  const std::string_view host = cut_after(rest, ':');
  const auto kind = std::ranges::find_if(kKinds, [&](FaultKind one) { return fault_name(one) == rest; });
  if (kind == kKinds.end()) return wrong(text, fmt::format("\"{}\" is no kind of fault", rest));
  fault.kind = *kind;
  if (fault.kind != FaultKind::kSlowStorage && (!parse_into(host, fault.host) || fault.host >= setup.hosts))
    return wrong(text, fmt::format("hosts are 0 to {}", setup.hosts - 1));
  return fault;
}

std::vector<Fault> random_faults(const ClusterSetup& setup, std::uint64_t count, double seconds) {
  std::vector<Fault> faults;
  for (std::uint64_t i = 0; i < count; ++i) {
    KeyedRandom random(setup.seed, 0, i, kFaultOp);
    Fault fault;
    fault.kind = kKinds[random.below(kKinds.size())];
    fault.host = static_cast<HostIndex>(random.below(setup.hosts));
    fault.at = seconds * (random.unit32() / 0x1p32);
    fault.until = fault.at + seconds * (0.01 + 0.1 * (random.unit32() / 0x1p32));
    fault.factor = 2 + static_cast<double>(random.below(9));
    faults.push_back(fault);
  }
  return faults;
}

}  // namespace foreload
