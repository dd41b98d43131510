// Source: where a dataset's bytes originally are. Opening one yields the list of samples (the
// index); reading their bytes is the business of the tiers. Immutable after open, so every
// method may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "foreload/result.h"
#include "foreload/transform.h"
#include "foreload/types.h"

namespace foreload {

// Size and modification time of a file when it was indexed: what a read is checked against. Of an object: its size and
// a hash of its ETag.
struct FileStamp {
  Bytes size = 0;
  std::int64_t mtime_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

class ObjectStore;

// Where a sample's bytes are: a range of one file below the source's root, or of an object.
struct Extent {
  int root = -1;                       // directory descriptor, owned by the source
  const ObjectStore* store = nullptr;  // instead of a root: `path` is an object's key there. Owned by the source
  std::string path{};                  // relative to root, never absolute, never with ".."
  std::string display{};               // what an error message calls it
  std::uint64_t file = 0;              // number of the file inside this source: equal means same file
  bool shared = false;                 // many samples live in this file (tar shard): worth keeping open
  Bytes offset = 0;
  Bytes length = 0;
  FileStamp stamp{};
};

struct Dimensions {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

class Source {
 public:
  virtual ~Source() = default;

  virtual std::uint64_t size() const = 0;
  // REQUIRES for all of these: id < size().
  virtual Bytes length(SampleId id) const = 0;
  virtual std::int64_t label(SampleId id) const = 0;
  virtual std::string key(SampleId id) const = 0;  // path of the file or tar member, with extension
  virtual Extent locate(SampleId id) const = 0;
  virtual std::optional<Dimensions> dimensions(SampleId id) const = 0;
  // Of a crop-addressable JPEG whose dataset has a record index: where its rows of MCUs begin (docs/record-format.md).
  // Otherwise empty.
  virtual std::span<const std::uint32_t> rows(SampleId /*id*/) const { return {}; }

  virtual const std::string& uri() const = 0;
  virtual std::vector<std::string> classes() const = 0;  // empty when labels have no names
  virtual Bytes total_bytes() const = 0;
  virtual Bytes max_length() const = 0;
  // xxh3 over (N; per id: key, length, label), or over what these follow from (token sequences).
  virtual std::uint64_t fingerprint() const = 0;
  // Hash of the sizes and times of all files: caches of bytes are good for one of these.
  virtual std::uint64_t validators() const;
};

// Flat files of unsigned integers, little-endian; every `sequence` of them are a sample, in each file from its
// beginning.
struct TokenSequences {
  DType dtype = DType::kU16;   // or kU32
  std::uint64_t sequence = 0;  // tokens per sample
};

struct SourceOptions {
  // Each is a folder, a tar file, or a list of tars ("train-{000..009}.tar", "train-*.tar"), or one of these behind a
  // URL (http, https, s3; docs/usage.md); several are concatenated in this order.
  std::vector<std::string> datasets{};
  // Which samples to take, in this order: ids or keys. Empty: all.
  std::variant<std::monostate, std::vector<SampleId>, std::vector<std::string>> subset{};
  // The datasets are files of tokens, or lists of such files.
  std::optional<TokenSequences> tokens{};
  // Tar members "key.json": the field that holds the label.
  std::string label_field = "label";
  // Where the index is kept. Empty: beside the dataset, or in the user's cache folder when that
  // is not writable or remote.
  std::string index_folder{};
  bool rebuild_index = false;
  // An index that is there is used without asking whether the dataset has changed: nothing is listed or looked at.
  // Samples that did change are errors when they are read; new ones are not seen.
  bool trust_index = false;
  bool keep_index = true;  // false: one that is there is used, but nothing is written
  unsigned threads = 0;    // 0: as many as the machine has
  // Called from the opening thread while the index is built: entries found, and how many there
  // will be (0: not known yet).
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
  std::function<void(const std::string&)> warn{};
};

Result<std::unique_ptr<Source>> open_source(const SourceOptions& options);

}  // namespace foreload
