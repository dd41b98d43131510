#include "source/tar_list.h"

#include <fmt/core.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "base/files.h"
#include "base/open_below.h"
#include "source/warnings.h"

namespace foreload {

namespace {

constexpr std::size_t kMaxShards = 1'000'000;
constexpr std::string_view kGlobCharacters = "*?[";

Error too_many(std::string_view text) {
  return {Code::kInvalid, fmt::format("the list {} names more than 1,000,000 shards", printable(text))};
}

// The place of the brace that closes the one at `open`, or npos.
std::size_t closing_brace(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

std::vector<std::string> split_choices(std::string_view body) {
  std::vector<std::string> choices(1);
  int depth = 0;
  for (const char c : body) {
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c == ',' && depth == 0) {
      choices.emplace_back();
    } else {
      choices.back() += c;
    }
  }
  return choices;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// "000..009", up or down. Leading zeros are kept. Empty: not a range.
Result<std::vector<std::string>> range(std::string_view body) {
  std::vector<std::string> values;
  const std::size_t dots = body.find("..");
  if (dots == std::string_view::npos) return values;
  const std::string_view first_text = body.substr(0, dots);
  const std::string_view last_text = body.substr(dots + 2);
  const auto first = number(first_text);
  const auto last = number(last_text);
  if (!first || !last) return values;
  const bool is_padded =
      (first_text.size() > 1 && first_text[0] == '0') || (last_text.size() > 1 && last_text[0] == '0');
  const std::size_t width = is_padded ? std::max(first_text.size(), last_text.size()) : 0;
  const std::uint64_t steps = *first < *last ? *last - *first : *first - *last;
  if (steps >= kMaxShards || width > NAME_MAX) return too_many(body);
  for (std::uint64_t i = 0; i <= steps; ++i) {
    values.push_back(fmt::format("{:0{}}", *first < *last ? *first + i : *first - i, width));
  }
  return values;
}

// What stands for the braces around `body`. Empty: nothing, they are plain characters.
Result<std::vector<std::string>> alternatives(std::string_view body) {
  std::vector<std::string> choices = split_choices(body);
  if (choices.size() > 1) return choices;
  return range(body);
}

Status expand_into(const std::string& text, std::size_t from, std::vector<std::string>& expanded) {
  for (std::size_t open = text.find('{', from); open != std::string::npos; open = text.find('{', open + 1)) {
    const std::size_t close = closing_brace(text, open);
    if (close == std::string::npos) continue;
    FORELOAD_ASSIGN(const std::vector<std::string> values,
                    alternatives(std::string_view(text).substr(open + 1, close - open - 1)));
    if (values.empty()) continue;
    for (const std::string& value : values) {
      // From `open` on again: a choice may hold braces of its own.
      FORELOAD_TRY(expand_into(text.substr(0, open) + value + text.substr(close + 1), open, expanded));
    }
    return {};
  }
  if (expanded.size() >= kMaxShards) return too_many(text);
  expanded.push_back(text);
  return {};
}

bool exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

class GlobMatches {
 public:
  explicit GlobMatches(const std::string& pattern) : result_(glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches_)) {}
  ~GlobMatches() { globfree(&matches_); }
  GlobMatches(const GlobMatches&) = delete;
  GlobMatches& operator=(const GlobMatches&) = delete;

  // Sorted by bytes; glob itself would sort as the locale says.
  std::vector<std::string> sorted() const {
    if (result_ != 0) return {};
    std::vector<std::string> paths(matches_.gl_pathv, matches_.gl_pathv + matches_.gl_pathc);
    std::sort(paths.begin(), paths.end());
    return paths;
  }

 private:
  glob_t matches_{};
  const int result_;
};

Status add_matches(const std::string& path, std::vector<std::string>& paths) {
  if (path.find_first_of(kGlobCharacters) == std::string::npos || exists(path)) {
    paths.push_back(path);
    return {};
  }
  const std::vector<std::string> matches = GlobMatches(path).sorted();
  if (matches.empty()) return Error{Code::kNotFound, fmt::format("no file matches {}", printable(path))};
  paths.insert(paths.end(), matches.begin(), matches.end());
  return {};
}

// One plain path. It was named by the user, so a link may lead anywhere.
Result<ShardList> single_shard(const std::string& path) {
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) return errno_error("cannot open the shard " + path, errno);
  struct stat status {};
  const bool is_link = lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  const std::string real = is_link ? resolved : path;
  const std::size_t name_at = real.rfind('/') + 1;
  return ShardList{real.substr(0, name_at), real.substr(name_at), {real.substr(name_at)}};
}

}  // namespace

bool has_list_syntax(std::string_view text) {
  return text.find('{') != std::string_view::npos || text.find_first_of(kGlobCharacters) != std::string_view::npos;
}

Result<std::vector<std::string>> expand_braces(const std::string& text) {
  std::vector<std::string> expanded;
  FORELOAD_TRY(expand_into(text, 0, expanded));
  return expanded;
}

Result<ShardList> expand_shards(const std::string& list) {
  ShardList found;
  if (!has_list_syntax(list) || exists(list)) {
    FORELOAD_ASSIGN(found, single_shard(list));
  } else {
    const std::size_t special = list.find_first_of("{*?[");
    const std::size_t name_at = list.substr(0, special).rfind('/') + 1;
    FORELOAD_ASSIGN(const std::vector<std::string> patterns, expand_braces(list));
    for (const std::string& pattern : patterns) FORELOAD_TRY(add_matches(pattern, found.shards));
    for (std::string& shard : found.shards) shard.erase(0, name_at);
    found.folder = list.substr(0, name_at);
    found.pattern = list.substr(name_at);
  }
  if (found.folder.empty()) found.folder = ".";
  while (found.folder.size() > 1 && found.folder.back() == '/') found.folder.pop_back();
  for (const std::string& shard : found.shards) {
    if (is_plain_relative(shard)) continue;
    return Error{Code::kInvalid, fmt::format("the shard {} of {} leads out of its folder", printable(shard), list)};
  }
  return found;
}

}  // namespace foreload
