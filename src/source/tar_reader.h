// TarReader: goes from header to header of a tar archive and never touches the members' bytes. Understands v7, ustar,
// GNU (long names, base-256 numbers, old sparse files) and pax (path, size, global records). The bytes come from a
// function and are untrusted. One thread.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

// Fills `into` from `offset` on. Fewer bytes only where the archive ends.
using ReadAt = std::function<Result<std::size_t>(Bytes offset, std::span<std::byte> into)>;

enum class TarType { kFile, kDirectory, kLink, kSparse, kSpecial };

struct TarMember {
  std::string name;  // as in the archive: may be absolute, contain "..", be very long
  TarType type = TarType::kFile;
  Bytes offset = 0;  // of its bytes
  Bytes size = 0;
};

class TarReader {
 public:
  TarReader(ReadAt read_at, Bytes archive_size) : read_at_(std::move(read_at)), archive_size_(archive_size) {}

  // The next member, or nothing at the end. kInvalid: this is no tar, or it is damaged at the named byte.
  Result<std::optional<TarMember>> next();
  // After the end: the name of the entry that the archive broke off in, if it did.
  const std::optional<std::string>& truncated() const { return truncated_; }
  // After the end: whether the end mark is missing, as it is in an archive that was cut between two entries.
  bool is_unmarked() const { return is_unmarked_; }
  const std::string& last_name() const { return last_name_; }  // of the last complete entry

 private:
  static constexpr std::size_t kBlock = 512;
  using Block = std::array<char, kBlock>;
  using Records = std::map<std::string, std::string, std::less<>>;
  enum class Found { kHeader, kEnd };

  Result<Found> read_header(Block& block);
  Result<bool> read_extension(char type, Bytes size);  // false: the archive ends inside
  Result<std::optional<TarMember>> member_of(const Block& block);
  Result<Bytes> size_of(const Block& block) const;
  std::string name_of(const Block& block) const;
  const std::string* record(std::string_view key) const;
  Result<bool> skip_sparse_maps(const Block& block);
  Status parse_records(std::string_view text, Records& records) const;
  Error damaged(std::string_view what) const;
  std::optional<TarMember> broken_off(std::string name);

  const ReadAt read_at_;
  const Bytes archive_size_;
  Bytes at_ = 0;         // where the next header is
  Bytes header_at_ = 0;  // of the current one
  bool is_first_ = true;
  std::string last_name_;
  std::optional<std::string> truncated_;
  bool is_unmarked_ = false;
  // For the next member only:
  std::optional<std::string> long_name_;
  Records records_;
  // For all that follow:
  Records global_records_;
};

}  // namespace foreload
