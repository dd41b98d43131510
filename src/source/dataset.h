// Dataset: one folder or list of shards as its kind sees it: how to index it, and whether an index still fits. A new
// kind of source implements this and gets one line in the table of open_source.cc.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "source/index.h"
#include "source/progress.h"
#include "source/warnings.h"
#include "store/object_store.h"

namespace foreload {

// Where a dataset is.
struct Place {
  Descriptor root;                           // every file of the dataset is opened below it
  std::unique_ptr<const ObjectStore> store;  // instead of a root: its objects are read from there
  std::string folder;                        // the same as a path or URL, for messages; no slash at its end
  std::string index_folder;                  // where its index belongs; empty: it has no place of its own
  std::string identity;  // what else distinguishes indexes in that folder: kind, shard list, options

  std::string display(std::string_view path) const { return (folder + '/').append(path); }
};

// What a scan may use. Owned by the caller for the time of the scan.
struct ScanContext {
  unsigned threads = 1;
  Warnings& warnings;
  ScanProgress& progress;
  const IndexView* before = nullptr;  // of an earlier scan, perhaps long ago: a hint how to divide the work
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const Place& place() const = 0;
  // Lists all samples. On success the result is the content of an index file.
  virtual Result<std::vector<std::byte>> scan(ScanContext& context) const = 0;
  // Whether `index`, kept in the file at `index_path`, describes what is there now.
  virtual bool is_current(const IndexView& index, const std::string& index_path, unsigned threads) const = 0;
  // For kinds where only a scan can tell: whether `now`, just scanned, says the same as `before`, which then stays.
  virtual bool is_confirmed(const IndexView& /*before*/, const IndexView& /*now*/) const { return false; }
  // Writes an index file. `index` is its content, already parsed.
  virtual Status save_index(const std::string& index_path, std::span<const std::byte> content,
                            const IndexView& index) const;
};

Result<std::unique_ptr<Dataset>> open_folder(const std::string& path, const SourceOptions& options);
// A tar file or a list of them.
Result<std::unique_ptr<Dataset>> open_tars(const std::string& list, const SourceOptions& options);
// The same by URL. Objects below a prefix of a bucket are a folder; a web server's folders can not be listed.
Result<std::unique_ptr<Dataset>> open_remote_folder(const std::string& url, const SourceOptions& options);
Result<std::unique_ptr<Dataset>> open_remote_tars(const std::string& list, const SourceOptions& options);

}  // namespace foreload
