// The bytes of an index file: header, column entries, header hash, columns. See docs/index-format.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace foreload {

inline constexpr std::array<char, 8> kIndexMagic{'F', 'L', 'I', 'N', 'D', 'E', 'X', '1'};
inline constexpr std::uint32_t kIndexVersion = 1;
inline constexpr std::uint32_t kMaxIndexColumns = 64;
inline constexpr std::size_t kMaxNoteBytes = 64 << 10;
inline constexpr std::uint64_t kIndexAlignment = 8;

struct IndexHeader {
  std::array<char, 8> magic = kIndexMagic;
  std::uint32_t version = kIndexVersion;
  std::uint32_t kind = 0;
  std::uint64_t samples = 0;
  std::uint64_t directories = 0;
  std::uint64_t shards = 0;
  std::uint64_t classes = 0;
  std::uint64_t fingerprint = 0;
  std::int64_t scan_time_ns = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t content_hash = 0;  // of everything behind the header hash
  std::uint32_t columns = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(IndexHeader) == 88);

struct IndexColumnEntry {
  std::uint32_t id = 0;
  std::uint32_t width = 0;  // bytes per value: 0, 1, 2, 4 or 8
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  std::int64_t base = 0;  // added to every value
};
static_assert(sizeof(IndexColumnEntry) == 32);

enum class ColumnId : std::uint32_t {
  kLength = 1,
  kLabel = 2,
  kDirectory = 3,
  kNameBlock = 4,
  kNameText = 5,
  kDirectoryBlock = 6,
  kDirectoryText = 7,
  kDirectoryMtime = 8,
  kDirectoryListing = 9,
  kClassBlock = 10,
  kClassText = 11,
  kMtime = 12,
  kShardBlock = 13,
  kShardText = 14,
  kShardSize = 15,
  kShardMtime = 16,
  kShard = 17,
  kOffset = 18,
  // From here on optional: a reader that does not know one skips it.
  kFirstOptional = 0x1000,
  kWidth = 0x1001,
  kHeight = 0x1002,
  kNoteText = 0x1003,
};

}  // namespace foreload
