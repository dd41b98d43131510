// The words of a job, so that remedies can repeat its command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "foreload/loader.h"
#include "lab/remedies.h"
#include "probe/planned_job.h"

namespace foreload {

// `flags` were given to `command`; those that `run` does not have are left out. `job` must outlive the result.
JobText words_of(const CLI::App& command, const PlannedJob& job);

// A word that a shell takes as it is.
std::string shell_word(const std::string& text);
// Where the records of a dataset would go: "data/train-records".
std::string converted_name(const std::string& uri);

}  // namespace foreload
