// What to change: every remedy alone, and pairs where one alone is not enough, with what they would bring. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/model.h"

namespace foreload {

// A flag of the command, or an argument of Python.
struct Setting {
  std::string name;
  std::string value;  // as it is written there; empty: it has none
};

// What the command line was, as far as a remedy repeats it.
struct JobText {
  std::string uri;                   // as a word of a shell
  std::string python_uri;            // as a literal
  std::vector<Setting> flags;        // the others, {"--batch", "256"}
  std::vector<Setting> arguments;    // the same for Python, {"batch_size", "256"}
  std::string converted;             // where records would go; good for both
  std::vector<Setting> bytes_flags;  // with which batches are u8; none: they can not be
  std::vector<Setting> bytes_arguments;
  bool has_host = false;  // learners of this machine share their cache
  Bytes memory = 0;       // the budget of a learner as it is; with a host, of all of them
  Bytes machine_memory = 0;
  std::function<Bytes(Bytes)> budget;  // of a learner, with which it keeps so many bytes of samples
};

struct Remedy {
  std::string title;  // "convert"
  double gain = 0;    // of the job's rate: 0.31 is +31 %
  double rate = 0;
  bool no_stall = false;  // is left
  std::string says;       // what it is and what it costs
  std::string command;    // empty: it is nothing that a command can do
  std::string python;
};

// Those that bring at least 2 %, best first: pairs, where they bring more than any single one, before those. None:
// nothing stalls, or nothing that is known would help.
std::vector<Remedy> remedies(const Model& model, const JobText& job);

}  // namespace foreload
