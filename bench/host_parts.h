// The parts of bench/host, and what they share.
#pragma once

#include <string>
#include <vector>

#include "foreload/result.h"
#include "probe/crew.h"
#include "probe/host_job.h"
#include "report.h"

namespace foreload {

struct HostBench {
  std::string program;  // this one, to be started again
  std::string work;     // folder for generated data
  unsigned rounds = 5;
  BenchReport& report;

  std::string fresh_host() const;
  // Over generated pictures, all of which are cached: RandomResizedCrop(224), flip, normalise to f32.
  LoaderOptions picture_options() const;
};
inline constexpr const char* kPictures = "cached generated pictures, RandomResizedCrop(224) + flip + normalise to f32";

// Processes, each with one of the jobs, all of them open.
Result<Crew> start_jobs(const HostBench& bench, const std::vector<HostJob>& jobs);
// What each of them answers; none, where one answers with an error.
Result<std::vector<double>> ask_all(Crew& crew, const std::string& request, const std::string& name);
// Samples per second of all of them together, who run at the same time.
Result<double> rate_of_all(Crew& crew, double seconds);
// The same of jobs that read one stream. Each takes so many: one that ended earlier would hold up the others.
Result<double> rate_of_equals(Crew& crew, std::uint64_t batches);

// Jobs that are equal: prepared once and read once.
Status bench_jobs(const HostBench& bench);
Status bench_source_bytes(const HostBench& bench);
// Learners in step with each other.
Status bench_balance(const HostBench& bench);
// What a member costs, and who runs on which cores.
Status bench_memory(const HostBench& bench);
Status bench_cores(const HostBench& bench);

}  // namespace foreload
