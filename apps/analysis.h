// Analysis: everything that `foreload analyze` found out, before it is written as JSON, text or a page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "lab/measured.h"
#include "lab/model.h"
#include "lab/prices.h"
#include "lab/remedies.h"
#include "lab/what_if.h"
#include "probe/analysis.h"

namespace foreload {

// A prediction beside what the loader did.
struct CheckedPoint {
  std::string point;
  double predicted = 0;
  double measured = 0;

  double off() const { return predicted / measured - 1; }
};

struct PricedSetups {
  Prices prices;
  std::optional<Cost> here;
  std::optional<Cost> cheapest;  // nothing: nothing keeps the accelerators busy
};

struct Analysis {
  std::string uri;
  std::uint64_t fingerprint = 0;
  std::string accelerator;  // as it was given
  std::string chain;
  std::string cpu;
  Bytes machine_memory = 0;
  Bytes budget = 0;  // of one learner
  JobSetup setup;
  Measured measured;
  std::optional<Prediction> later;
  std::optional<Prediction> first;
  std::vector<Curve> curves;
  std::vector<Choice> choices;
  std::vector<Remedy> remedies;
  std::optional<Forms> forms;
  std::optional<PricedSetups> prices;
  std::optional<std::vector<CheckedPoint>> check;
  double seconds = 0;
  Bytes bytes_read = 0;

  double cached_share() const;  // of the dataset, in the memory of a learner or its host
};

// The report of --json.
Json to_json(const Analysis& analysis);
// For people: no more than a screen of 24 lines, unless much is missing.
void print_summary(const Analysis& analysis, const Output& output);

}  // namespace foreload
