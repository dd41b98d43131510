// A .npy file is "\x93NUMPY", two version bytes, the header's length (2 bytes in version 1, else 4), the
// header, and the elements. The header is a Python dictionary with three keys:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 224, 224), }
#include "prep/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace foreload {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostHeader = 64 << 10;

Error bad(std::string_view reason) {
  return {Code::kBadSample, fmt::format(".npy: {}", reason)};
}

// A cursor over the dictionary. Every reader skips blanks first and returns nothing if the text is other.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool take(std::string_view word) {
    skip_blanks();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::string_view> quoted() {
    skip_blanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<std::uint64_t> number() {
    skip_blanks();
    std::uint64_t value = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      if (digits == 18) return std::nullopt;
      value = value * 10 + static_cast<std::uint64_t>(rest_[digits] - '0');
    }
    if (digits == 0) return std::nullopt;
    rest_.remove_prefix(digits);
    if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);  // written by Python 2
    return value;
  }

 private:
  void skip_blanks() {
    const std::size_t first = rest_.find_first_not_of(" \n\t");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }

  std::string_view rest_;
};

Result<DType> dtype_of(std::string_view descr) {
  constexpr std::pair<std::string_view, DType> kKnown[] = {
      {"u1", DType::kU8},  {"i2", DType::kI16}, {"u2", DType::kU16}, {"i4", DType::kI32}, {"u4", DType::kU32},
      {"i8", DType::kI64}, {"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64},
  };
  if (descr.size() > 32) return bad("its element type is not a plain number");
  if (descr.size() < 2) return bad(fmt::format("its element type '{}' is unknown", descr));
  for (const auto& [name, dtype] : kKnown) {
    if (descr.substr(1) != name) continue;
    if (descr[0] == '<' || descr[0] == '=' || descr[0] == '|') return dtype;
    if (descr[0] == '>') return bad(fmt::format("its elements are big-endian ('{}'); save it as '<{}'", descr, name));
  }
  return bad(fmt::format("its element type '{}' is none of u8, i16, u16, i32, u32, i64, f16, f32, f64", descr));
}

Status read_shape(Reader& reader, NpyHeader& header) {
  if (!reader.take("(")) return bad("its shape is not a tuple");
  while (!reader.take(")")) {
    const auto number = reader.number();
    if (!number || header.rank == NpyHeader::kMaxRank) return bad("its shape can not be read");
    header.shape_room[header.rank++] = *number;
    if (reader.take(",")) continue;
    if (!reader.take(")")) return bad("its shape can not be read");
    break;
  }
  return {};
}

Status read_entry(Reader& reader, NpyHeader& header, unsigned& seen) {
  const auto key = reader.quoted();
  if (!key || !reader.take(":")) return bad("its header can not be read");
  if (*key == "shape") {
    seen |= 1;
    header.rank = 0;
    return read_shape(reader, header);
  }
  if (*key == "fortran_order") {
    seen |= 2;
    if (reader.take("False")) return {};
    return bad(reader.take("True") ? "it is in Fortran order; save it in C order" : "its order can not be read");
  }
  if (*key != "descr") return bad("its header has an unknown key");
  seen |= 4;
  const auto descr = reader.quoted();
  if (!descr) return bad("its element type is not a plain number");
  FORELOAD_ASSIGN(header.dtype, dtype_of(*descr));
  return {};
}

Status read_dictionary(std::string_view text, NpyHeader& header) {
  Reader reader(text);
  unsigned seen = 0;
  if (!reader.take("{")) return bad("its header is not a dictionary");
  for (int entries = 0; entries < 3; ++entries) {
    FORELOAD_TRY(read_entry(reader, header, seen));
    if (!reader.take(",")) break;
  }
  if (!reader.take("}") || seen != 7) return bad("its header lacks descr, fortran_order or shape");
  return {};
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<NpyHeader> parse_npy(std::span<const std::byte> bytes) {
  constexpr std::size_t kShort = 10;
  if (!is_npy(bytes)) return bad("not a .npy file");
  if (bytes.size() < kShort) return bad("it ends inside its header");
  const auto version = static_cast<unsigned>(bytes[6]);
  if (version < 1 || version > 3) return bad(fmt::format("version {} is unknown", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t begin = 8 + length_bytes;
  if (bytes.size() < begin) return bad("it ends inside its header");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= static_cast<std::size_t>(bytes[8 + i]) << (8 * i);
  if (length > kMostHeader) return bad(fmt::format("its header claims {} bytes", length));
  if (length > bytes.size() - begin) return bad("it ends inside its header");
  NpyHeader header;
  FORELOAD_TRY(read_dictionary({reinterpret_cast<const char*>(bytes.data()) + begin, length}, header));
  header.data_offset = begin + length;
  return header;
}

Result<std::span<const std::byte>> npy_data(std::span<const std::byte> sample, const TensorSpec& spec) {
  FORELOAD_ASSIGN(const NpyHeader header, parse_npy(sample));
  if (header.dtype != spec.dtype) {
    return bad(
        fmt::format("its elements are {}, the chain wants {}", dtype_name(header.dtype), dtype_name(spec.dtype)));
  }
  const auto shape = header.shape();
  if (!std::equal(shape.begin(), shape.end(), spec.shape.begin(), spec.shape.end())) {
    return bad(fmt::format("its shape is {}, the chain wants {}", shape_text(shape), shape_text(spec.shape)));
  }
  const auto data = sample.subspan(header.data_offset);
  if (data.size() != spec.bytes()) {
    return bad(fmt::format("{} bytes follow its header, its shape needs {}", data.size(), spec.bytes()));
  }
  return data;
}

Result<std::span<const std::byte>> headerless_data(std::span<const std::byte> sample, const TensorSpec& spec) {
  if (sample.size() == spec.bytes()) return sample;
  return Error{Code::kBadSample, fmt::format("{} bytes, but {} elements of {} need {}", sample.size(),
                                             shape_text(spec.shape), dtype_name(spec.dtype), spec.bytes())};
}

}  // namespace foreload
