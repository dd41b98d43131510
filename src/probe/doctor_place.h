// The file systems that a dataset, its index and its disk cache are on.
#pragma once

#include <cstdint>
#include <string>

#include "foreload/result.h"
#include "foreload/types.h"
#include "probe/doctor.h"

namespace foreload {

enum class PlaceKind { kLocal, kNetwork, kOverlay, kMemory, kUnknown };

struct PlaceView {
  std::string path;
  std::string file_system;  // "ext4"
  PlaceKind kind = PlaceKind::kUnknown;
  Bytes size = 0;
  Bytes free = 0;  // for this user
  bool may_write = false;
  bool is_folder = true;
};

// What the numbers of statfs() mean.
struct FileSystem {
  const char* name;
  PlaceKind kind;
};
FileSystem file_system_of(std::uint64_t magic);

// kNotFound: there is no such path.
Result<PlaceView> look_at_place(const std::string& path);
Result<PlaceView> look_at_place(int folder, const std::string& path);  // of an open folder; `path` is for display

struct DatasetShape {
  std::uint64_t samples = 0;
  Bytes bytes = 0;
  bool in_shards = false;  // many samples per file
};

Finding judge_dataset_place(const PlaceView& place, const DatasetShape& shape);
Finding judge_disk_cache(const PlaceView& place, const DatasetShape& shape);
// Where the index would be kept: beside the dataset, or in the user's cache folder.
Finding judge_index_place(bool beside, bool user_cache, const std::string& user_folder);

}  // namespace foreload
