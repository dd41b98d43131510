// What `foreload doctor` finds. A check is two things: looking, which reads the machine or a dataset and changes
// nothing, and judging, a pure function of what was seen, so that tests can make up machines.
#pragma once

#include <string>
#include <vector>

namespace foreload {

enum class Severity {
  kOk,
  kNote,    // worth knowing
  kCosts,   // the run works, but slower or with less
  kBreaks,  // the run, or what it is for, will fail
};
const char* severity_name(Severity severity);

struct Finding {
  Severity severity = Severity::kOk;
  std::string what;    // what was looked at: "io_uring"
  std::string found;   // with its number
  std::string cost{};  // what follows from it
  std::string mend{};  // what to do: a command where there is one
};

using Findings = std::vector<Finding>;

bool breaks(const Findings& findings);
// The worst first; equals stay in their order.
void sort_by_severity(Findings& findings);

}  // namespace foreload
