#include "subset.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace foreload {

namespace {

constexpr Bytes kMaxSubsetFile = 1_GiB;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view item = text.substr(0, end);
    if (item.ends_with('\r')) item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

std::optional<std::vector<SampleId>> as_ids(const std::vector<std::string>& items) {
  std::vector<SampleId> ids;
  ids.reserve(items.size());
  for (const std::string& item : items) {
    SampleId id = 0;
    const char* end = item.data() + item.size();
    const auto [stop, problem] = std::from_chars(item.data(), end, id);
    if (problem != std::errc{} || stop != end) return std::nullopt;
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

Result<Subset> parse_subset(const std::string& text) {
  if (text.empty()) return Subset{};
  std::vector<std::string> items;
  if (text.front() == '@') {
    FORELOAD_ASSIGN(const std::string content, read_whole_file(text.substr(1), kMaxSubsetFile));
    items = split(content, '\n');
  } else {
    items = split(text, ',');
  }
  if (items.empty()) return Error{Code::kInvalid, fmt::format("--subset {} names no samples", text)};
  if (auto ids = as_ids(items)) return Subset{std::move(*ids)};
  return Subset{std::move(items)};
}

}  // namespace foreload
