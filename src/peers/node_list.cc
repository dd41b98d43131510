// A name is literals and brackets in turns, "rack[0-1]n[01-08]": its names are the product, with the first bracket
// turning slowest, as Slurm numbers nodes. The size of a product is known before it is made.
#include "peers/node_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace foreload {
namespace {

constexpr std::size_t kLongestName = 240;
constexpr std::size_t kMostDigits = 15;

Error wrong(std::string what) {
  return {Code::kInvalid, std::move(what)};
}

Error too_many(std::size_t most) {
  return wrong(fmt::format("it has more than {} names", most));
}

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = problem == std::errc() && end == text.data() + text.size();
  return whole && !text.empty() && text.size() <= kMostDigits ? std::optional(value) : std::nullopt;
}

// Up to the next comma, which is taken as well.
std::string_view take_part(std::string_view& text) {
  const std::size_t comma = text.find(',');
  const std::string_view part = text.substr(0, comma);
  text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  return part;
}

// "01-03" or "7".
Status add_range(std::string_view range, std::size_t most, std::vector<std::string>& numbers) {
  const std::size_t dash = range.find('-');
  const std::string_view from = range.substr(0, dash);
  const auto first = number(from);
  const auto last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
  if (!first || !last || *last < *first) return wrong("brackets hold numbers and ranges, as in node[01-03,7]");
  if (*last - *first >= most || numbers.size() + (*last - *first) >= most) return too_many(most);
  for (std::uint64_t i = *first; i <= *last; ++i) numbers.push_back(fmt::format("{:0{}}", i, from.size()));
  return {};
}

// What stands between brackets.
Result<std::vector<std::string>> numbers_of(std::string_view ranges, std::size_t most) {
  std::vector<std::string> numbers;
  do {
    FORELOAD_TRY(add_range(take_part(ranges), most, numbers));
  } while (!ranges.empty());
  return numbers;
}

// The next name with its brackets, up to a comma outside of them, which is taken as well.
std::string_view take_name(std::string_view& text) {
  bool inside = false;
  std::size_t end = 0;
  for (; end < text.size() && (inside || text[end] != ','); ++end) {
    if (text[end] == '[') inside = true;
    if (text[end] == ']') inside = false;
  }
  const std::string_view name = text.substr(0, end);
  text = end == text.size() ? std::string_view() : text.substr(end + 1);
  return name;
}

Status append_literal(std::string_view literal, std::vector<std::string>& names) {
  if (!std::all_of(literal.begin(), literal.end(), is_name_character)) {
    return wrong("names of nodes have letters, digits, dots and dashes");
  }
  if (names.front().size() + literal.size() > kLongestName) return wrong("a name is too long");
  for (std::string& name : names) name += literal;
  return {};
}

Result<std::vector<std::string>> names_of(std::string_view name, std::size_t most) {
  std::vector<std::string> names{""};
  while (true) {
    const std::size_t open = name.find('[');
    FORELOAD_TRY(append_literal(name.substr(0, open), names));
    if (open == std::string_view::npos) break;
    const std::size_t close = name.find(']', open);
    if (close == std::string_view::npos) return wrong("a bracket is not closed");
    FORELOAD_ASSIGN(const auto numbers, numbers_of(name.substr(open + 1, close - open - 1), most));
    if (names.size() * numbers.size() > most) return too_many(most);
    std::vector<std::string> product;
    for (const std::string& begin : names) {
      for (const std::string& end : numbers) product.push_back(begin + end);
    }
    names = std::move(product);
    name = name.substr(close + 1);
  }
  if (names.front().empty()) return wrong("a name is empty");
  return names;
}

}  // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view text, std::size_t most) {
  std::vector<std::string> all;
  do {
    FORELOAD_ASSIGN(const auto names, names_of(take_name(text), most));
    if (all.size() + names.size() > most) return too_many(most);
    all.insert(all.end(), names.begin(), names.end());
  } while (!text.empty());
  return all;
}

Result<std::uint32_t> count_of_node(std::string_view text, std::size_t node) {
  const auto unclear = [] { return wrong("it is no list of counts, as in 4(x2),3"); };
  const bool single = text.find_first_not_of("0123456789") == std::string_view::npos;
  std::uint64_t before = 0;  // nodes whose counts were read
  do {
    const std::string_view part = take_part(text);
    const std::size_t open = part.find("(x");
    const auto count = number(part.substr(0, open));
    std::optional<std::uint64_t> times = 1;
    if (open != std::string_view::npos) {
      if (part.back() != ')') return unclear();
      times = number(part.substr(open + 2, part.size() - open - 3));
    }
    if (!count || *count > UINT32_MAX || !times || *times == 0 || *times > UINT32_MAX) return unclear();
    before += *times;
    if (single || node < before) return static_cast<std::uint32_t>(*count);
  } while (!text.empty());
  return wrong(fmt::format("it has counts of {} nodes, and none of node {}", before, node));
}

}  // namespace foreload
