// The text form of a chain:
//
//   chain  = op { "," op }
//   op     = name [ "(" [ param { "," param } ] ")" ]
//   param  = [ name "=" ] value          unnamed values come first, in the order of the op's parameters
//   value  = number | number ":" [ number { ":" number } ] | ":" | word
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>

#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

constexpr std::size_t kMostText = 64 << 10;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Transform>> chain() {
    std::vector<Transform> transforms;
    do {
      if (transforms.size() == kMostTransforms) return error(fmt::format("at most {} transforms", kMostTransforms));
      FORELOAD_ASSIGN(Transform transform, op());
      transforms.push_back(std::move(transform));
    } while (take(','));
    if (place_ != text_.size()) return error("',' or the end");
    return transforms;
  }

 private:
  Error error(std::string_view wanted) const {
    return {Code::kInvalid, fmt::format("chain '{}': expected {} at '{}'", text_, wanted, text_.substr(place_, 20))};
  }

  void skip_blanks() {
    while (place_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[place_]))) ++place_;
  }

  bool take(char c) {
    skip_blanks();
    if (place_ == text_.size() || text_[place_] != c) return false;
    ++place_;
    skip_blanks();
    return true;
  }

  std::string word() {
    skip_blanks();
    const std::size_t first = place_;
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (first < text_.size() && !std::isdigit(static_cast<unsigned char>(text_[first]))) {
      while (place_ < text_.size() && is_part(text_[place_])) ++place_;
    }
    const std::string found(text_.substr(first, place_ - first));
    skip_blanks();
    return found;
  }

  std::optional<double> number() {
    skip_blanks();
    double value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + place_, text_.data() + text_.size(), value);
    if (problem != std::errc()) return std::nullopt;
    place_ = static_cast<std::size_t>(end - text_.data());
    skip_blanks();
    return value;
  }

  Result<Transform> op() {
    Transform transform{word(), {}};
    if (transform.name.empty()) return error("the name of a transform");
    FORELOAD_ASSIGN(const OpEntry* entry, find_op(transform.name));
    if (!take('(') || take(')')) return transform;
    do {
      FORELOAD_TRY(param(*entry, transform));
    } while (take(','));
    if (!take(')')) return error("',' or ')'");
    return transform;
  }

  Status param(const OpEntry& entry, Transform& transform) {
    const std::size_t start = place_;
    std::string name = word();
    if (name.empty() || !take('=')) {
      place_ = start;
      const std::size_t index = transform.params.size();
      if (index == entry.params.size()) {
        return error(fmt::format("not more than the {} parameters of {}", index, entry.name));
      }
      name = entry.params[index];
    }
    FORELOAD_ASSIGN(Param parsed, value());
    transform.params.emplace_back(std::move(name), std::move(parsed));
    return {};
  }

  Result<Param> value() {
    std::string text = word();
    if (!text.empty()) return Param(std::move(text));
    std::vector<double> numbers;
    auto next = number();
    const bool has_first = next.has_value();
    if (next) numbers.push_back(*next);
    bool is_list = false;
    while (take(':')) {
      is_list = true;
      next = number();
      if (!next) break;
      numbers.push_back(*next);
    }
    if (is_list) return Param(std::move(numbers));
    if (!has_first) return error("a number or a word");
    return Param(numbers[0]);
  }

  std::string_view text_;
  std::size_t place_ = 0;
};

}  // namespace

Result<std::vector<Transform>> parse_chain(const std::string& text) {
  if (text.size() > kMostText) return Error{Code::kInvalid, fmt::format("a chain of {} characters", text.size())};
  FORELOAD_ASSIGN(std::vector<Transform> chain, Parser(text).chain());
  for (const auto& transform : chain) FORELOAD_TRY(make_op(transform));
  return chain;
}

std::string chain_text(std::span<const Transform> chain) {
  std::string text;
  for (const auto& transform : chain) {
    const auto entry = find_op(transform.name);
    std::string params;
    for (std::size_t i = 0; i < transform.params.size(); ++i) {
      const auto& [name, value] = transform.params[i];
      const bool is_first = i == 0 && entry && name == (*entry)->params.front();
      params +=
          fmt::format("{}{}{}{}", i > 0 ? ", " : "", is_first ? "" : name, is_first ? "" : "=", param_text(value));
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", transform.name);
    if (!params.empty()) text += fmt::format("({})", params);
  }
  return text;
}

}  // namespace foreload
