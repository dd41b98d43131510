// What to change: every remedy alone, and pairs where one alone is not enough, with what they would bring. Pure.
#pragma once

#include <string>
#include <vector>

#include "lab/model.h"

namespace foreload {

// What the command line was, as far as a remedy repeats it.
struct JobText {
  std::string uri;               // as a word of a shell
  std::string flags;             // the other flags, " --batch 256 --accelerator 900"
  std::string python_uri;        // as a literal
  std::string python_arguments;  // the others, ", batch_size=256"
  std::string converted;         // where records would go: a word of a shell, and of Python without its quotes
  std::string bytes_flags;       // " --dtype u8 --chain '…'": with which batches are bytes; empty: they can not be
  bool has_host = false;         // learners of this machine share their cache
  Bytes machine_memory = 0;
  Bytes overhead = 0;  // of a learner's budget, beside its cache
};

struct Remedy {
  std::string title;  // "convert: +31 %"
  double gain = 0;    // of the job's rate, 0.31
  double rate = 0;
  std::string says;     // what it is and what it costs
  std::string command;  // empty: it is nothing that a command can do
  std::string python;
};

// Those that bring at least 2 %, best first. None: nothing stalls, or nothing that is known would help.
std::vector<Remedy> remedies(const Model& model, const JobText& job);

}  // namespace foreload
