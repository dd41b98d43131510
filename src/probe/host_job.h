// HostJob: a loader in a process of its own, for benchmarks of several at once. The process is this program again, with
// the job as its argument; it answers requests, each a line:
//
//   warm           waits until nothing more is to be cached      → {"cached": …, "capacity": …, "source": …}
//   epoch          takes what is left of the epoch               → the same
//   rate SECONDS   next() as fast as it goes, then idles         → {"rate": samples per second}
//   take BATCHES   the same, for so many batches                 → the same
//   step           gives back the last batch and takes the next  → {"samples": …}
#pragma once

#include <string>
#include <vector>

#include "foreload/loader.h"
#include "foreload/result.h"

namespace foreload {

struct HostJob {
  LoaderOptions loader{};   // of it: what job_text() writes
  unsigned slots = 0;       // as in Seams
  unsigned host_cores = 0;  // as in Seams
};

std::string job_text(const HostJob& job);
Result<HostJob> parse_job(const std::string& text);

// The started process: opens the loader, says {"opened": 1}, and answers until its input ends. Dies with its parent.
// What goes wrong is answered as {"error": …}.
int serve_job(const std::string& text);

// A number of an answer. kIo: the process reports an error, or there is none of that name.
Result<double> number_in(const std::string& answer, const std::string& name);

}  // namespace foreload
