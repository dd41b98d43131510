// From the list of a folder's files to an index: classes, labels, order. The same for a folder of a local disk and for
// the objects below a prefix of a bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "source/folder_scan.h"
#include "source/warnings.h"

namespace foreload {

// The content of an index file; nothing when there is no sample. Adds warnings about what it leaves out; all of them
// become notes of the index.
std::optional<std::vector<std::byte>> index_of_folder(FolderScan found, std::int64_t scan_time_ns, Warnings& warnings);

}  // namespace foreload
