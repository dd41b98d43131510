// Plain reading of files through the page cache, as a loader without a cache of its own does it, in a process whose
// memory a control group limits: which part has to be read from the disk again.
#pragma once

#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

// A control group (v1 or v2) for processes that we start; removed with the object, when they have ended.
class MemoryGroup {
 public:
  // Page cache and heap of its processes together stay below `limit`. An error where we may not make groups.
  static Result<MemoryGroup> make(Bytes limit);
  MemoryGroup(MemoryGroup&& other) noexcept;
  MemoryGroup& operator=(MemoryGroup&&) = delete;
  ~MemoryGroup();

  const std::string& folder() const { return folder_; }
  // Moves this process into the group of that folder.
  static Status enter(const std::string& folder);

 private:
  explicit MemoryGroup(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;  // empty: moved from
};

struct PageCacheJob {
  std::string samples{};  // StorageSet::samples()
  std::uint64_t size = 0;
  Epoch epochs = 0;
  unsigned threads = 8;
};
// Reads all samples in a fresh order each epoch; per epoch, the bytes that came from the block device.
Result<std::vector<Bytes>> read_through_page_cache(const PageCacheJob& job);

}  // namespace foreload
