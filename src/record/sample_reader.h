// SampleReader: the bytes of a source's samples, one by one, checked against the index. One per thread.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "source/extent_reader.h"
#include "store/http_client.h"

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

  const Source& source_;
  const std::function<bool()> stop_;
  HttpClient client_;
  ExtentReader reader_{client_};
};

}  // namespace foreload
