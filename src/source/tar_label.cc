#include "source/tar_label.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace foreload {

namespace {

constexpr int kMaxDepth = 64;

const nlohmann::json* member(const nlohmann::json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(name));
  return found == object.end() ? nullptr : &*found;
}

const nlohmann::json* at_path(const nlohmann::json& object, std::string_view path) {
  const nlohmann::json* here = &object;
  while (here != nullptr) {
    const std::size_t dot = path.find('.');
    here = member(*here, path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  return here;
}

std::optional<std::int64_t> integer(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();  // "3.0": some writers know no integers
  if (!(std::abs(number) < 0x1p53) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

FoundLabel label_of_cls(std::string_view text) {
  text = trimmed(text);
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size()) return {true, std::nullopt};
  return {true, value};
}

FoundLabel label_of_json(std::string_view text, std::string_view field) {
  // What is nested deeper is dropped while it is read: a megabyte of brackets would take a hundred of memory.
  const auto keep = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) { return depth < kMaxDepth; };
  const nlohmann::json document = nlohmann::json::parse(text.begin(), text.end(), keep, false);
  if (document.is_discarded()) return {};
  const nlohmann::json* found = member(document, field);
  if (found == nullptr) found = at_path(document, field);
  if (found == nullptr) return {};
  return {true, integer(*found)};
}

}  // namespace foreload
