#include "probe/doctor.h"

#include <algorithm>

namespace foreload {

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kCosts:
      return "costs";
    case Severity::kBreaks:
      return "breaks";
    default:
      return "ok";
  }
}

bool breaks(const Findings& findings) {
  return std::ranges::any_of(findings, [](const Finding& one) { return one.severity == Severity::kBreaks; });
}

void sort_by_severity(Findings& findings) {
  std::ranges::stable_sort(findings, std::greater<>(), &Finding::severity);
}

}  // namespace foreload
