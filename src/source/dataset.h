// Dataset: one folder or list of shards as its kind sees it: how to index it, and whether an index still fits. A new
// kind of source implements this and gets one line in the table of open_source.cc.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "source/index.h"
#include "source/progress.h"
#include "source/warnings.h"

namespace foreload {

// Where a dataset is.
struct Place {
  Descriptor root;           // every file of the dataset is opened below it
  std::string folder;        // the same as a path, for messages
  std::string index_folder;  // where its index belongs
  std::string identity;      // what else distinguishes indexes in that folder: kind, shard list, options
};

// What a scan may use. Owned by the caller for the time of the scan.
struct ScanContext {
  unsigned threads = 1;
  Warnings& warnings;
  ScanProgress& progress;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const Place& place() const = 0;
  // Lists all samples. On success the result is the content of an index file.
  virtual Result<std::vector<std::byte>> scan(ScanContext& context) const = 0;
  // Whether `index`, kept in the file at `index_path`, describes what is there now.
  virtual bool is_current(const IndexView& index, const std::string& index_path, unsigned threads) const = 0;
  // Writes an index file. `index` is its content, already parsed.
  virtual Status save_index(const std::string& index_path, std::span<const std::byte> content,
                            const IndexView& index) const = 0;
};

Result<std::unique_ptr<Dataset>> open_folder(const std::string& path, const SourceOptions& options);
// A tar file or a list of them.
Result<std::unique_ptr<Dataset>> open_tars(const std::string& list, const SourceOptions& options);

}  // namespace foreload
