// convert_dataset: a folder or tars become tar shards that load faster: JPEGs are rewritten without loss so that a crop
// can be decoded alone. What is written depends on the source and the options alone, never on threads or
// interruptions; a killed conversion is continued by the same call. The source is only read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

enum class OnBadSample {
  kFail,  // ends the conversion with an error that names the sample
  kKeep,  // copied as it is and listed: whoever loads it decides
};

struct ConvertOptions {
  SourceOptions source{};  // index folder and keep_index are not heeded: the source's place is not written to
  std::string destination{};
  Bytes shard_bytes = 256_MiB;  // of the samples as they are in the source
  std::optional<std::uint64_t> shuffle_seed{};
  bool keep_original = false;  // copy every sample as it is
  std::uint32_t max_side = 0;  // with loss: larger images are shrunk to this. 0: never
  std::uint32_t quality = 90;  // of the shrunk ones, 1 … 100
  OnBadSample on_bad = OnBadSample::kFail;
  Limits limits{};
  unsigned threads = 0;                                // 0: as many as the process may run on
  std::function<bool()> stop;                          // asked often, from any thread; true ends with kCancelled
  std::function<void(std::uint64_t done)> progress;    // samples that are written by now; from one thread
  std::function<void(std::uint64_t samples)> planned;  // before anything is written
};

struct BadSample {
  SampleId id = 0;  // in the source
  std::string key{};
  std::string reason{};
};

struct ConvertReport {
  std::string source_uri{};
  std::uint64_t source_fingerprint = 0;
  std::uint64_t fingerprint = 0;  // of what was written
  std::uint64_t samples = 0;
  std::uint64_t made = 0;  // by this call; the others were there
  std::uint64_t shards = 0;
  Bytes source_bytes = 0;  // of the samples, without tar headers
  Bytes bytes = 0;
  std::uint64_t rewritten = 0;
  std::uint64_t shrunk = 0;
  std::uint64_t copied = 0;   // no JPEG, or one of a kind that can not be made crop-addressable
  std::uint64_t damaged = 0;  // images that decode with complaints: copied
  std::vector<BadSample> bad{};
  unsigned threads = 0;
};

Result<ConvertReport> convert_dataset(const ConvertOptions& options);

}  // namespace foreload
