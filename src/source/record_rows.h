// RecordRows: where the rows of MCUs begin in every crop-addressable JPEG of a converted dataset, so that a crop's part
// of the bytes is known before they are read. A mapped side file (docs/record-format.md). The bytes are untrusted:
// parse() checks every number once. Immutable; any thread may read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

inline constexpr std::array<char, 8> kRowsMagic{'F', 'L', 'R', 'O', 'W', 'S', '0', '1'};
inline constexpr std::uint32_t kRowsVersion = 1;
inline constexpr std::uint64_t kMaxRowOffsets = 65536;  // of one sample

struct RowsHeader {
  std::array<char, 8> magic = kRowsMagic;
  std::uint32_t version = kRowsVersion;
  std::uint32_t reserved = 0;
  std::uint64_t samples = 0;
  std::uint64_t offsets = 0;       // of all samples together
  std::uint64_t fingerprint = 0;   // of the dataset they belong to
  std::uint64_t content_hash = 0;  // of everything behind the header
  std::uint64_t file_bytes = 0;
  std::uint64_t header_hash = 0;  // of everything before it
};
static_assert(sizeof(RowsHeader) == 64);

// Reads bytes that belong to someone else.
class RecordRowsView {
 public:
  // kInvalid with the reason when the bytes are no complete, consistent side file. REQUIRES: aligned for u64.
  static Result<RecordRowsView> parse(std::span<const std::byte> file);

  std::uint64_t size() const { return header_.samples; }
  std::uint64_t fingerprint() const { return header_.fingerprint; }
  // First bytes of the rows, counted from the sample's first byte, rising; the last one is where the data ends. The
  // first one is the length of the header. Empty: not crop-addressable. REQUIRES: id < size().
  std::span<const std::uint32_t> rows(SampleId id) const;

 private:
  Status check_header(std::span<const std::byte> file);
  Status check_samples() const;

  RowsHeader header_;
  std::span<const std::uint64_t> starts_;  // of each sample in offsets_, and the end of the last
  std::span<const std::uint32_t> offsets_;
};

// A side file together with the memory it lives in.
class RecordRows {
 public:
  // kNotFound: there is none. kMismatch: it belongs to another dataset than `fingerprint`.
  static Result<RecordRows> open(const std::string& path, std::uint64_t fingerprint);
  // The same from memory; `name` is for messages.
  static Result<RecordRows> from_bytes(std::vector<std::byte> bytes, const std::string& name,
                                       std::uint64_t fingerprint);

  const RecordRowsView& view() const { return view_; }

 private:
  using Storage = std::variant<std::vector<std::byte>, MappedFile>;
  RecordRows(Storage storage, RecordRowsView view) : storage_(std::move(storage)), view_(view) {}
  static Result<RecordRows> parse(Storage storage, const std::string& name, std::uint64_t fingerprint);
  Storage storage_;
  RecordRowsView view_;
};

class RecordRowsBuilder {
 public:
  // In id order. REQUIRES: rising, at most kMaxRowOffsets.
  void add(std::span<const std::uint32_t> rows);
  // The content of a side file.
  std::vector<std::byte> finish(std::uint64_t fingerprint) &&;

 private:
  std::vector<std::uint64_t> starts_{0};
  std::vector<std::uint32_t> offsets_;
};

}  // namespace foreload
