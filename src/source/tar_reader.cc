// A member is a header block of 512 bytes, then its bytes, padded to whole blocks. Headers of type L, K, x and g are
// extensions that say something about the next member (g: about all next ones):
//
//   [x: path=…, size=…] [file: name, size] [bytes …] [file] [bytes …] [zero block] [zero block]
//
// A member that would reach beyond the end of the archive is treated as broken off there, whatever its size says.
#include "source/tar_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "source/warnings.h"

namespace foreload {

namespace {

constexpr Bytes kMaxExtension = 1_MiB;  // of a long name or of pax records
constexpr std::size_t kMaxRecords = 1024;
constexpr std::size_t kMaxSparseMaps = 65536;

struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kTypeAt = 156;
constexpr Field kMagic{257, 8};
constexpr Field kPrefix{345, 155};
constexpr std::size_t kIsExtendedAt = 482;     // in the header of an old GNU sparse file
constexpr std::size_t kMapIsExtendedAt = 504;  // in the blocks that continue its map
constexpr std::string_view kPaxSparse = "GNU.sparse.";

template <typename Block>
std::string_view field(const Block& block, Field where) {
  return {block.data() + where.at, where.size};
}

std::string_view until_nul(std::string_view text) {
  return text.substr(0, std::min(text.find('\0'), text.size()));
}

// Octal digits between blanks, ended by a blank or NUL. Empty fields are 0.
std::optional<std::uint64_t> parse_octal(std::string_view text) {
  std::size_t i = std::min(text.find_first_not_of(' '), text.size());
  std::uint64_t value = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '7'; ++i) {
    if (value >> 61 != 0) return std::nullopt;
    value = value << 3 | static_cast<std::uint64_t>(text[i] - '0');
  }
  if (i < text.size() && text[i] != ' ' && text[i] != '\0') return std::nullopt;
  return value;
}

// Octal, or GNU's base-256: top bit set, then a big-endian number. Negative ones are of no use here.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if ((first & 0x80) == 0) return parse_octal(text);
  std::uint64_t value = first & 0x7f;
  for (const char c : text.substr(1)) {
    if (value >> 55 != 0) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

// The checksum is the sum of all bytes with its own field as blanks. Old writers summed signed bytes.
template <typename Block>
bool is_checksum_right(const Block& block) {
  const auto expected = parse_octal(field(block, kChecksum));
  if (!expected) return false;
  std::int64_t sum = 0;
  std::int64_t signed_sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    sum += is_own ? ' ' : static_cast<unsigned char>(block[i]);
    signed_sum += is_own ? ' ' : static_cast<signed char>(block[i]);
  }
  const auto wanted = static_cast<std::int64_t>(*expected);
  return wanted == sum || wanted == signed_sum;
}

template <typename Block>
bool is_zero(const Block& block) {
  return std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; });
}

TarType type_of(char flag, std::string_view name) {
  switch (flag) {
    case '\0':
    case '0':
    case '7':
      // Before ustar a directory was a file whose name ends in a slash.
      return !name.empty() && name.back() == '/' ? TarType::kDirectory : TarType::kFile;
    case '1':
    case '2':
      return TarType::kLink;
    case '5':
      return TarType::kDirectory;
    case 'S':
      return TarType::kSparse;
    default:
      return TarType::kSpecial;
  }
}

// Links, devices, directories and pipes have no bytes, whatever their size field says.
bool has_bytes(char flag) {
  return flag < '1' || flag > '6';
}

bool is_extension(char flag) {
  return flag == 'L' || flag == 'K' || flag == 'x' || flag == 'X' || flag == 'g';
}

}  // namespace

Error TarReader::damaged(std::string_view what) const {
  if (is_first_) return {Code::kInvalid, fmt::format("it is not a tar: {}", what)};
  return {Code::kInvalid,
          fmt::format("it is damaged at byte {}, after the entry {}: {}", header_at_, printable(last_name_), what)};
}

std::optional<TarMember> TarReader::broken_off(std::string name) {
  truncated_ = std::move(name);
  at_ = archive_size_;
  return std::nullopt;
}

Result<TarReader::Found> TarReader::read_header(Block& block) {
  header_at_ = at_;
  if (archive_size_ == 0) return damaged("it is empty");
  if (at_ >= archive_size_) {
    if (long_name_ || !records_.empty()) broken_off(fmt::format("the one after {}", last_name_));
    is_unmarked_ = !truncated_;
    return Found::kEnd;
  }
  FORELOAD_ASSIGN(const std::size_t got, read_at_(at_, std::as_writable_bytes(std::span(block))));
  std::fill(block.begin() + static_cast<long>(got), block.end(), '\0');
  if (got < kBlock && !is_zero(block)) {
    if (is_first_) return damaged("it is shorter than one header");
    broken_off(fmt::format("the one after {}", last_name_));
    return Found::kEnd;
  }
  if (is_zero(block)) {
    at_ = archive_size_;
    return Found::kEnd;
  }
  if (!is_checksum_right(block)) return damaged("the checksum of a header is wrong");
  at_ += kBlock;
  return Found::kHeader;
}

const std::string* TarReader::record(std::string_view key) const {
  for (const Records* records : {&records_, &global_records_}) {
    const auto found = records->find(key);
    // An empty value takes back what was said before.
    if (found != records->end()) return found->second.empty() ? nullptr : &found->second;
  }
  return nullptr;
}

std::string TarReader::name_of(const Block& block) const {
  if (const std::string* sparse = record("GNU.sparse.name")) return *sparse;
  if (const std::string* path = record("path")) return *path;
  if (long_name_) return *long_name_;
  std::string name(until_nul(field(block, kName)));
  const std::string_view prefix = until_nul(field(block, kPrefix));
  // GNU's magic ends in blanks, and its headers keep other things where ustar has the prefix.
  const bool is_ustar = field(block, kMagic).substr(0, 6) == std::string_view("ustar\0", 6);
  return is_ustar && !prefix.empty() ? fmt::format("{}/{}", prefix, name) : name;
}

Result<Bytes> TarReader::size_of(const Block& block) const {
  if (const std::string* text = record("size")) {
    Bytes size = 0;
    const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), size);
    if (error != std::errc() || stop != text->data() + text->size()) return damaged("a pax size is not a number");
    return size;
  }
  const auto size = parse_number(field(block, kSize));
  if (!size) return damaged("a size is not a number");
  return *size;
}

// "27 path=some/very/long/name\n": the length counts the whole record.
Status TarReader::parse_records(std::string_view text, Records& records) const {
  while (!text.empty() && text.front() != '\0') {
    std::size_t length = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(stop - text.data());
    if (error != std::errc() || length < digits + 3 || length > text.size() || *stop != ' ') {
      return damaged("a pax record has a wrong length");
    }
    const std::string_view body = text.substr(digits + 1, length - digits - 2);
    const std::size_t equals = body.find('=');
    if (equals == std::string_view::npos || text[length - 1] != '\n') return damaged("a pax record is malformed");
    const std::string_view key = body.substr(0, equals);
    if (key == "path" || key == "size" || key.substr(0, kPaxSparse.size()) == kPaxSparse) {
      records.insert_or_assign(std::string(key), std::string(body.substr(equals + 1)));
    }
    text.remove_prefix(length);
  }
  if (records.size() > kMaxRecords) return damaged("there are too many pax records");
  return {};
}

Result<bool> TarReader::read_extension(char type, Bytes size) {
  if (size > archive_size_ - at_) return false;
  if (size > kMaxExtension) return damaged("a long name or pax header exceeds 1 MiB");
  std::string text(size, '\0');
  FORELOAD_ASSIGN(const std::size_t got, read_at_(at_, std::as_writable_bytes(std::span(text))));
  if (got < size) return false;
  at_ += (size + kBlock - 1) / kBlock * kBlock;
  if (type == 'L') long_name_ = until_nul(text);
  if (type == 'x' || type == 'X') FORELOAD_TRY(parse_records(text, records_));
  if (type == 'g') FORELOAD_TRY(parse_records(text, global_records_));
  return true;
}

Result<bool> TarReader::skip_sparse_maps(const Block& block) {
  char more = block[kIsExtendedAt];
  for (std::size_t maps = 0; more != '\0'; ++maps) {
    Block map;
    if (maps == kMaxSparseMaps) return damaged("the map of a sparse file does not end");
    FORELOAD_ASSIGN(const std::size_t got, read_at_(at_, std::as_writable_bytes(std::span(map))));
    if (got < kBlock) return false;
    at_ += kBlock;
    more = map[kMapIsExtendedAt];
  }
  return true;
}

Result<std::optional<TarMember>> TarReader::member_of(const Block& block) {
  const char flag = block[kTypeAt];
  TarMember member;
  member.name = name_of(block);
  member.type = type_of(flag, member.name);
  const auto sparse = records_.lower_bound(kPaxSparse);
  if (sparse != records_.end() && sparse->first.substr(0, kPaxSparse.size()) == kPaxSparse) {
    member.type = TarType::kSparse;
  }
  FORELOAD_ASSIGN(member.size, size_of(block));
  if (!has_bytes(flag)) member.size = 0;
  if (flag == 'S') {
    FORELOAD_ASSIGN(const bool is_complete, skip_sparse_maps(block));
    if (!is_complete) return broken_off(member.name);
  }
  member.offset = at_;
  if (at_ > archive_size_ || member.size > archive_size_ - at_) return broken_off(member.name);
  // The padding of the last member may be missing.
  at_ += std::min((member.size + kBlock - 1) / kBlock * kBlock, archive_size_ - at_);
  last_name_ = member.name;
  is_first_ = false;
  long_name_.reset();
  records_.clear();
  return std::optional(std::move(member));
}

Result<std::optional<TarMember>> TarReader::next() {
  for (;;) {  // ends: every round moves at least one block ahead
    Block block;
    FORELOAD_ASSIGN(const Found found, read_header(block));
    if (found == Found::kEnd) return std::optional<TarMember>();
    if (!is_extension(block[kTypeAt])) return member_of(block);
    const auto size = parse_number(field(block, kSize));
    if (!size) return damaged("a size is not a number");
    FORELOAD_ASSIGN(const bool is_complete, read_extension(block[kTypeAt], *size));
    if (!is_complete) return broken_off(fmt::format("the one after {}", last_name_));
  }
}

}  // namespace foreload
