// SampleReader: the bytes of a source's samples, one by one, checked against the index. One per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

class SampleReader {
 public:
  // `source` must outlive this. `stop` is asked before every further attempt.
  SampleReader(const Source& source, std::function<bool()> stop) : source_(source), stop_(std::move(stop)) {}

  // kDataChanged: the file is not the one that was indexed. kIo: not readable after some attempts. kCancelled: stopped
  // between two of them.
  Result<std::vector<std::byte>> read(SampleId id);

 private:
  Status read_once(SampleId id, const Extent& extent, std::vector<std::byte>& bytes);
  Status open(const Extent& extent);

  const Source& source_;
  const std::function<bool()> stop_;
  Descriptor file_;
  std::optional<std::uint64_t> shard_;  // of which file_ is open
};

}  // namespace foreload
