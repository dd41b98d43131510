// Another program, run to its end: what it printed.
#pragma once

#include <string>
#include <vector>

#include "foreload/result.h"

namespace foreload {

// Starts command[0] (found as a shell would) with the rest as arguments and waits for it. kNotFound: there is no such
// program; kIo: it did not end with 0. Its standard error is ours. At most 1 MiB is kept.
Result<std::string> output_of(const std::vector<std::string>& command);

}  // namespace foreload
