// Index: the list of a dataset's samples as one block of bytes, mapped from a file or built in memory. One format for
// every kind of source (docs/index-format.md). The bytes are untrusted: parse() checks every offset, name and number
// once, and what it accepts can be read without further care. Immutable, so any thread may read.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "source/index_format.h"
#include "source/name_table.h"
#include "source/packed.h"

namespace foreload {

enum class IndexKind : std::uint32_t {
  kFolder = 1,  // every sample is a file
  kTar = 2,     // samples are ranges of shard files
};

// Reads an index whose bytes belong to someone else.
class IndexView {
 public:
  // kInvalid with the reason when the bytes are not a complete, consistent index.
  static Result<IndexView> parse(std::span<const std::byte> file);

  IndexKind kind() const { return static_cast<IndexKind>(header_.kind); }
  std::uint64_t size() const { return header_.samples; }
  std::uint64_t fingerprint() const { return header_.fingerprint; }
  std::int64_t scan_time_ns() const { return header_.scan_time_ns; }
  Bytes total_bytes() const { return total_bytes_; }
  Bytes max_length() const { return max_length_; }

  // REQUIRES for all of these: id < size().
  Bytes length(SampleId id) const { return static_cast<Bytes>(column(ColumnId::kLength)[id]); }
  std::int64_t label(SampleId id) const { return column(ColumnId::kLabel)[id]; }
  std::string key(SampleId id) const;
  std::int64_t mtime_ns(SampleId id) const { return column(ColumnId::kMtime)[id]; }  // kFolder
  std::uint64_t shard(SampleId id) const { return static_cast<std::uint64_t>(column(ColumnId::kShard)[id]); }  // kTar
  Bytes offset(SampleId id) const { return static_cast<Bytes>(column(ColumnId::kOffset)[id]); }                // kTar
  std::optional<Dimensions> dimensions(SampleId id) const;

  // Directories of the keys, relative to the root; "" is the root itself.
  std::uint64_t directories() const { return directories_.size(); }
  std::string directory(std::uint64_t i) const { return directories_.at(i); }
  std::int64_t directory_mtime_ns(std::uint64_t i) const { return column(ColumnId::kDirectoryMtime)[i]; }  // kFolder
  std::uint64_t directory_listing(std::uint64_t i) const;                                                  // kFolder
  bool has_samples_in(std::uint64_t directory) const;

  std::uint64_t shards() const { return shards_.size(); }
  std::string shard_path(std::uint64_t i) const { return shards_.at(i); }
  FileStamp shard_stamp(std::uint64_t i) const;

  std::vector<std::string> classes() const;
  std::vector<std::string> notes() const;  // warnings of the scan

  // The file with the dimensions of all samples added or replaced.
  std::vector<std::byte> with_dimensions(std::span<const Dimensions> dimensions) const;

 private:
  Status parse_header();
  Status parse_columns();
  Status require(ColumnId id, std::uint64_t count) const;
  Status check_shape();
  Status check_names() const;
  Status check_samples();
  NameTable names(ColumnId blocks, ColumnId text, std::uint64_t count) const;
  const Packed& column(ColumnId id) const { return known_[slot(id)].values; }
  std::span<const std::byte> text(ColumnId id) const { return known_[slot(id)].bytes; }
  bool has(ColumnId id) const { return known_[slot(id)].present; }
  static std::size_t slot(ColumnId id);

  struct Column {
    bool present = false;
    Packed values;
    std::span<const std::byte> bytes;
  };
  static constexpr std::size_t kKnownColumns = 24;

  std::span<const std::byte> file_;
  IndexHeader header_;
  std::vector<IndexColumnEntry> entries_;
  std::array<Column, kKnownColumns> known_{};
  NameTable names_;
  NameTable directories_;
  NameTable classes_;
  NameTable shards_;
  Bytes total_bytes_ = 0;
  Bytes max_length_ = 0;
};

// An index together with the memory it lives in.
class Index {
 public:
  static Result<Index> open(const std::string& path);
  static Result<Index> from_bytes(std::vector<std::byte> bytes);

  const IndexView& view() const { return view_; }

 private:
  using Storage = std::variant<std::vector<std::byte>, MappedFile>;
  Index(Storage storage, IndexView view) : storage_(std::move(storage)), view_(std::move(view)) {}
  static Result<Index> parse(Storage storage);

  Storage storage_;
  IndexView view_;
};

}  // namespace foreload
