// IndexBuilder: collects samples in id order and lays them out as an index file. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "foreload/source.h"
#include "source/index.h"
#include "source/index_format.h"
#include "source/name_table.h"

namespace foreload {

// xxh3 over (N; per id: key, length, label): the same for every place and form of the same data.
class Fingerprint {
 public:
  explicit Fingerprint(std::uint64_t samples) { hasher_.add(samples); }
  void add(std::string_view key, Bytes length, std::int64_t label) {
    hasher_.add(key).add(length).add(static_cast<std::uint64_t>(label));
  }
  std::uint64_t value() const { return hasher_.value(); }

 private:
  Hasher hasher_;
};

struct IndexedSample {
  std::uint64_t directory = 0;  // as returned by add_directory
  std::string_view name;        // without directory
  Bytes length = 0;
  std::int64_t label = kNoLabel;
  std::int64_t mtime_ns = 0;  // kFolder
  std::uint64_t shard = 0;    // kTar: as returned by add_shard
  Bytes offset = 0;           // kTar
};

class IndexBuilder {
 public:
  // `samples`: how many will be added. `scan_time_ns`: wall clock before the first directory was listed.
  IndexBuilder(IndexKind kind, std::uint64_t samples, std::int64_t scan_time_ns);

  // `listing`: hash of the names in it, see directory.h; both are 0 for tars.
  std::uint64_t add_directory(std::string_view path, std::int64_t mtime_ns = 0, std::uint64_t listing = 0);
  std::uint64_t add_shard(std::string_view path, const FileStamp& stamp);
  void add_class(std::string_view name) { classes_.add(name); }
  void add_note(std::string_view line);
  // REQUIRES: directory and shard were added; names are short, plain and not empty.
  void add(const IndexedSample& sample);
  // REQUIRES: as many samples were added as announced.
  std::vector<std::byte> finish() &&;

 private:
  IndexHeader header_;
  Fingerprint fingerprint_;
  NameTableBuilder names_, directories_, classes_, shards_;
  std::vector<std::string> directory_paths_;
  std::vector<std::int64_t> directory_mtimes_, directory_listings_, shard_sizes_, shard_mtimes_;
  std::vector<std::int64_t> lengths_, labels_, sample_directories_, mtimes_, sample_shards_, offsets_;
  std::string notes_;
};

// One column on its way into a file; the bytes live until assemble_index() returns.
struct IndexColumn {
  ColumnId id{};
  unsigned width = 0;
  std::uint64_t count = 0;
  std::int64_t base = 0;
  std::span<const std::byte> bytes;
};

// Fills in the sizes and hashes of `header` and puts everything in one block.
std::vector<std::byte> assemble_index(IndexHeader header, std::span<const IndexColumn> columns);

}  // namespace foreload
