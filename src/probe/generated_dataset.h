// generate_dataset: a folder of synthetic photographs (see synthetic.h), one sub-folder per class, or the same
// samples as tar shards. What is written depends on the options alone. Every file appears complete or not at
// all, so an interrupted run is continued by the same call; a folder that holds anything else is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

struct GenerateOptions {
  std::string folder;
  std::uint64_t images = 1000;
  std::uint64_t seed = 0;
  std::uint64_t classes = 10;
  std::uint64_t shard_images = 0;  // 0: one file per image; otherwise tars of so many, each made in memory
  unsigned threads = 0;            // 0: as many as the process may run on
  std::function<bool()> stop;      // asked before every image, from any thread; true ends with kCancelled
  std::function<void(std::uint64_t done)> progress;  // images that are there by now; from any thread
};

struct GenerateReport {
  std::uint64_t images = 0;
  std::uint64_t made = 0;  // by this call; the others were there
  Bytes bytes = 0;         // of all files
};

Result<GenerateReport> generate_dataset(const GenerateOptions& options);

}  // namespace foreload
