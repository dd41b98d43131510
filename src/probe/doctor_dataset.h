// Oddities of a dataset. What the index has (lengths, labels) is exact; what is in the samples is looked at for some of
// them: the smallest, the largest, and others that a seed chooses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "foreload/types.h"
#include "probe/doctor.h"

namespace foreload {

// How many, and one of them.
struct Cases {
  std::uint64_t count = 0;
  std::string example;
};

struct ClassSize {
  std::string name;
  std::uint64_t samples = 0;
};

struct DatasetView {
  std::uint64_t samples = 0;
  Bytes bytes = 0;
  Bytes median = 0;
  Bytes largest = 0;
  Cases empty;
  Cases oversized;  // longer than a loader takes
  Cases huge;       // a hundred times the median, and many MiB
  Cases tiny;       // less than a hundredth of the median
  std::uint64_t unlabelled = 0;
  std::uint64_t classes = 0;  // that have samples
  ClassSize smallest_class;
  ClassSize largest_class;
  bool in_shards = false;
  bool is_remote = false;
  std::uint64_t files_kept_open = 0;
};

DatasetView look_at_index(const Source& source);
Findings judge_index(const DatasetView& view);

struct SampleChecks {
  std::uint64_t looked = 0;  // at what is in them
  Cases broken;              // can not be decoded
  Cases damaged;             // decoded, but not as written
  Cases unreadable;
  std::uint64_t compared = 0;        // with others of their length
  Cases copies;                      // of a sample before them
  std::uint64_t contradictions = 0;  // copies with another label
  bool knows_format = true;          // pictures or arrays; otherwise only copies were looked for
};

struct SampleCheckOptions {
  std::uint64_t most = 2000;
  Bytes most_bytes = 1_GiB;
  Duration most_time = std::chrono::seconds(15);  // for each of the two
  std::uint64_t seed = 0;
  unsigned threads = 1;
  std::function<bool()> stop;                        // from any thread
  std::function<void(std::uint64_t done)> progress;  // from any thread
};

// kCancelled: stopped. Everything else is what it is about.
Result<SampleChecks> check_samples(const Source& source, const SampleCheckOptions& options);
Findings judge_samples(const SampleChecks& checks, std::uint64_t samples);

}  // namespace foreload
