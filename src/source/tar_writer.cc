// ustar has 100 bytes for a name and 155 for the directories before it. A longer path, or a size of 8 GiB and more,
// is told by a pax record in a header of its own; the ustar header then holds as much of the name as fits.
#include "source/tar_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/open_below.h"

namespace foreload {

namespace {

constexpr std::size_t kNameBytes = 100;
constexpr std::size_t kPrefixBytes = 155;
constexpr Bytes kMostOctal = (Bytes{1} << 33) - 1;  // eleven octal digits
constexpr std::string_view kPaxName = "PaxHeader";

struct SplitPath {
  std::string_view prefix;
  std::string_view name;
  bool fits = true;
};

SplitPath split_for_ustar(std::string_view path) {
  if (path.size() <= kNameBytes) return {{}, path};
  // The first slash that leaves a short enough name leaves the shortest prefix, too.
  const std::size_t slash = path.find('/', path.size() - kNameBytes - 1);
  if (slash != std::string_view::npos && slash > 0 && slash <= kPrefixBytes && slash + 1 < path.size()) {
    return {path.substr(0, slash), path.substr(slash + 1)};
  }
  return {{}, path.substr(0, kNameBytes), false};
}

std::string header_block(std::string_view prefix, std::string_view name, Bytes size, char type) {
  std::string block(kTarBlockBytes, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { text.copy(block.data() + at, text.size()); };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  put(148, "        ");  // the checksum counts itself as blanks
  block[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  put(265, "root");
  put(297, "root");
  put(329, "0000000");
  put(337, "0000000");
  put(345, prefix);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum));
  block[154] = '\0';
  return block;
}

// "27 path=some/very/long/name\n": the length counts its own digits.
std::string pax_text(std::string_view key, std::string_view value) {
  const std::size_t body = key.size() + value.size() + 3;  // blank, "=", newline
  std::size_t length = body + 1;
  while (std::to_string(length).size() + body != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace

std::string tar_file_header(std::string_view name, Bytes size) {
  FORELOAD_CHECK(is_plain_relative(name), "names are checked before they are written");
  const SplitPath split = split_for_ustar(name);
  std::string records;
  if (!split.fits) records += pax_text("path", name);
  if (size > kMostOctal) records += pax_text("size", fmt::format("{}", size));
  std::string header;
  if (!records.empty()) {
    header = header_block({}, kPaxName, records.size(), 'x') + records;
    header.resize(tar_padded(header.size()));
  }
  return header + header_block(split.prefix, split.name, std::min(size, kMostOctal), '0');
}

}  // namespace foreload
