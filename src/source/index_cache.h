// Where index files are kept, and how a dataset gets its index: from a file that still fits, or by a scan.
#pragma once

#include <span>
#include <string>

#include "foreload/result.h"
#include "foreload/source.h"
#include "source/dataset.h"
#include "source/index.h"

namespace foreload {

struct CachedIndex {
  Index index;
  std::string path;  // of its file; empty: it is in memory only
};

// Beside the dataset or, where that is not writable or remote, in $XDG_CACHE_HOME/foreload or ~/.cache/foreload; only
// in options.index_folder if that is given. A damaged file is built anew with a warning, one that does not fit any more
// with a warning that counts what changed. Blocks for the scan.
Result<CachedIndex> open_index(const Dataset& dataset, const std::string& uri, const SourceOptions& options);

// Writes the index file at `path`. A folder that nobody may write to (mode 0555) is left alone, also by root.
Status save_index(const Dataset& dataset, const std::string& path, std::span<const std::byte> content,
                  const IndexView& index);

}  // namespace foreload
