// The chunk VP8L, or ALPH with compression, is a string of bits: transforms, each with an image of its own; the size of
// the colour cache; and the image that gives each tile its group. Such an image is five prefix codes and then symbols:
// green, followed by red, blue and alpha, or a copy of earlier pixels, or a colour of the cache. The number of groups
// is one more than the largest red · 256 + green; copies and the cache only repeat what stood before, so no pixel is
// kept. Prefix codes are canonical and read bit by bit: the images are small.
#include "prep/webp_groups.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace foreload {

namespace {

constexpr unsigned kLongestCode = 15;
constexpr unsigned kLiterals = 256;
constexpr unsigned kLengthSymbols = 24;
constexpr unsigned kDistanceSymbols = 40;
constexpr unsigned kMostCacheBits = 11;
// libwebp keeps unused groups up to this many.
constexpr std::uint64_t kKeptGroups = 1000;

// Bits beyond the end are zeros, and noted.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool failed() const { return place_ > 8 * bytes_.size(); }
  std::uint32_t bit() {
    const std::size_t byte = place_ / 8;
    const std::uint32_t value = byte < bytes_.size() ? static_cast<std::uint32_t>(bytes_[byte]) >> place_ % 8 & 1 : 0;
    ++place_;
    return value;
  }
  std::uint32_t bits(unsigned count) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= bit() << i;
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t place_ = 0;
};

class PrefixCode {
 public:
  // False: the lengths are no complete code.
  bool assign(std::span<const std::uint8_t> lengths);
  std::uint32_t read(BitReader& reader) const;

 private:
  std::array<std::uint32_t, kLongestCode + 1> counts_{};  // of codes, by length
  std::vector<std::uint16_t> symbols_;                    // by length, then by value
};

bool PrefixCode::assign(std::span<const std::uint8_t> lengths) {
  counts_.fill(0);
  for (const std::uint8_t length : lengths) ++counts_[length];
  counts_[0] = 0;
  std::array<std::uint32_t, kLongestCode + 2> next{};  // place in symbols_, by length
  for (unsigned length = 1; length <= kLongestCode; ++length) next[length + 1] = next[length] + counts_[length];
  symbols_.resize(next.back());
  for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
    if (lengths[symbol] > 0) symbols_[next[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
  }
  if (symbols_.size() == 1) return true;
  std::uint32_t used = 0;  // of the 2^15 longest codes
  for (unsigned length = 1; length <= kLongestCode; ++length) used += counts_[length] << (kLongestCode - length);
  return used == 1u << kLongestCode;
}

std::uint32_t PrefixCode::read(BitReader& reader) const {
  if (symbols_.size() == 1) return symbols_.front();
  std::uint32_t code = 0;
  std::uint32_t first = 0;  // code of this length
  std::size_t index = 0;    // of its symbol
  for (unsigned length = 1; length <= kLongestCode; ++length) {
    code |= reader.bit();
    if (code < first + counts_[length]) return symbols_[index + code - first];
    index += counts_[length];
    first = (first + counts_[length]) << 1;
    code <<= 1;
  }
  return symbols_.back();  // not reached: the code is complete
}

bool read_lengths(BitReader& reader, std::span<std::uint8_t> lengths) {
  constexpr std::array<std::uint8_t, 19> kOrder{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::array<std::uint8_t, kOrder.size()> code_lengths{};
  const unsigned given = reader.bits(4) + 4;
  if (given > kOrder.size()) return false;
  for (unsigned i = 0; i < given; ++i) code_lengths[kOrder[i]] = static_cast<std::uint8_t>(reader.bits(3));
  PrefixCode code;
  if (!code.assign(code_lengths)) return false;
  std::size_t most = lengths.size();
  if (reader.bit() != 0) most = 2 + reader.bits(2 + 2 * reader.bits(3));
  if (most > lengths.size()) return false;
  std::uint8_t last = 8;
  for (std::size_t symbol = 0; symbol < lengths.size() && most > 0; --most) {
    const std::uint32_t read = code.read(reader);
    std::uint32_t times = 1;
    if (read == 16) times = 3 + reader.bits(2);
    if (read == 17) times = 3 + reader.bits(3);
    if (read == 18) times = 11 + reader.bits(7);
    if (symbol + times > lengths.size()) return false;
    if (read > 0 && read < 16) last = static_cast<std::uint8_t>(read);
    std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(symbol), times,
                read == 0 || read > 16 ? std::uint8_t{0} : last);
    symbol += times;
  }
  return true;
}

bool read_code(BitReader& reader, unsigned symbols, PrefixCode& code) {
  std::vector<std::uint8_t> lengths(std::max(symbols, kLiterals));  // a short code may name what does not exist
  if (reader.bit() != 0) {
    const bool has_second = reader.bit() != 0;
    lengths[reader.bits(reader.bit() != 0 ? 8 : 1)] = 1;
    if (has_second) lengths[reader.bits(8)] = 1;
  } else if (!read_lengths(reader, std::span(lengths).first(symbols))) {
    return false;
  }
  return code.assign(std::span(lengths).first(symbols)) && !reader.failed();
}

// Of a copy's length or distance.
std::uint32_t read_number(BitReader& reader, std::uint32_t symbol) {
  if (symbol < 4) return symbol + 1;
  const unsigned extra = (symbol - 2) / 2;
  return ((2 + symbol % 2) << extra) + reader.bits(extra) + 1;
}

// 0 bits: there is none.
std::optional<unsigned> read_cache_bits(BitReader& reader) {
  if (reader.bit() == 0) return 0;
  const unsigned bits = reader.bits(4);
  if (bits < 1 || bits > kMostCacheBits) return std::nullopt;
  return bits;
}

// The largest red · 256 + green of an image with one group of codes.
std::optional<std::uint32_t> read_image(BitReader& reader, std::uint64_t pixels) {
  const auto cache_bits = read_cache_bits(reader);
  if (!cache_bits) return std::nullopt;
  const unsigned cached = *cache_bits > 0 ? 1u << *cache_bits : 0;
  std::array<PrefixCode, 5> codes;  // green and more, red, blue, alpha, distance
  const std::array<unsigned, 5> symbols{kLiterals + kLengthSymbols + cached, kLiterals, kLiterals, kLiterals,
                                        kDistanceSymbols};
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (!read_code(reader, symbols[i], codes[i])) return std::nullopt;
  }
  std::uint32_t largest = 0;
  for (std::uint64_t pixel = 0; pixel < pixels;) {
    const std::uint32_t green = codes[0].read(reader);
    std::uint64_t length = 1;
    if (green < kLiterals) {
      largest = std::max(largest, codes[1].read(reader) * 256 + green);
      codes[2].read(reader);
      codes[3].read(reader);
    } else if (green < kLiterals + kLengthSymbols) {
      length = read_number(reader, green - kLiterals);
      read_number(reader, codes[4].read(reader));
    }
    if (reader.failed()) return std::nullopt;
    pixel += length;
  }
  return largest;
}

std::uint32_t tiles_of(std::uint32_t side, unsigned bits) {
  return (side + (1u << bits) - 1) >> bits;
}

// `size` becomes that of the packed picture, when there is a palette.
bool skip_transforms(BitReader& reader, Dimensions& size) {
  enum Transform { kPredictor = 0, kColour = 1, kSubtractGreen = 2, kPalette = 3 };
  std::array<bool, 4> seen{};
  while (reader.bit() != 0) {
    const std::uint32_t kind = reader.bits(2);
    if (seen[kind]) return false;
    seen[kind] = true;
    if (kind == kSubtractGreen) continue;
    if (kind == kPalette) {
      const std::uint32_t colours = reader.bits(8) + 1;
      if (!read_image(reader, colours)) return false;
      const unsigned bits = colours > 16 ? 0 : colours > 4 ? 1 : colours > 2 ? 2 : 3;
      size.width = tiles_of(size.width, bits);
    } else {
      const unsigned bits = reader.bits(3) + 2;
      if (!read_image(reader, std::uint64_t{tiles_of(size.width, bits)} * tiles_of(size.height, bits))) return false;
    }
  }
  return true;
}

std::optional<std::uint64_t> count_groups(BitReader reader, Dimensions size) {
  if (!skip_transforms(reader, size) || !read_cache_bits(reader)) return std::nullopt;
  const bool has_groups = reader.bit() != 0;
  if (reader.failed()) return std::nullopt;
  if (!has_groups) return 1;
  const unsigned bits = reader.bits(3) + 2;
  const std::uint64_t tiles = std::uint64_t{tiles_of(size.width, bits)} * tiles_of(size.height, bits);
  const auto largest = read_image(reader, tiles);
  if (!largest) return std::nullopt;
  const std::uint64_t groups = std::uint64_t{*largest} + 1;
  return groups <= kKeptGroups ? groups : std::min(groups, std::max(tiles, kKeptGroups));
}

struct Chunk {
  std::span<const std::byte> name;
  std::span<const std::byte> content;  // as much as is there
  bool is(const char* other) const { return std::memcmp(name.data(), other, 4) == 0; }
};

// Moves to the one behind it.
std::optional<Chunk> next_chunk(std::span<const std::byte>& rest) {
  constexpr std::size_t kHeader = 8;
  if (rest.size() < kHeader) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size |= static_cast<std::size_t>(rest[4 + i]) << 8 * i;
  const auto behind = rest.subspan(kHeader);
  const Chunk chunk{rest.first(4), behind.first(std::min(size, behind.size()))};
  rest = behind.subspan(std::min(size + size % 2, behind.size()));
  return chunk;
}

}  // namespace

std::optional<std::uint64_t> count_webp_groups(std::span<const std::byte> file, Dimensions size) {
  constexpr std::size_t kFileHeader = 12;
  constexpr std::size_t kPictureHeader = 5;  // signature, and the size once more
  constexpr unsigned kCompression = 3;       // of an ALPH chunk's first byte; 1: without loss
  if (file.size() < kFileHeader) return std::nullopt;
  auto rest = file.subspan(kFileHeader);
  std::span<const std::byte> alpha;  // of several, libwebp takes the last
  while (const auto chunk = next_chunk(rest)) {
    if (chunk->is("VP8L")) {
      if (chunk->content.size() < kPictureHeader) return std::nullopt;
      return count_groups(BitReader(chunk->content.subspan(kPictureHeader)), size);
    }
    if (chunk->is("VP8 ")) {
      const bool is_coded = !alpha.empty() && (static_cast<unsigned>(alpha[0]) & kCompression) == 1;
      return is_coded ? count_groups(BitReader(alpha.subspan(1)), size) : 0;
    }
    if (chunk->is("ALPH")) alpha = chunk->content;
  }
  return std::nullopt;
}

}  // namespace foreload
