// Explains recorded runs (`foreload analyze --record`): what limited when, which samples were slow, how unequal the
// learners were; and writes them as a Chrome trace.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "foreload/result.h"

namespace foreload {

struct ExplainOptions {
  std::vector<std::string> records;  // files of `run --record`; several are the learners of one job
  std::string chrome;                // where the Chrome trace goes; empty: none
  std::vector<std::string> dataset;  // of the runs, to name samples; empty: they have numbers only
};

// Prints what is to be said to people, and returns all of it.
Result<Json> explain_record(const ExplainOptions& options, const Output& output);

}  // namespace foreload
