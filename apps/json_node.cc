#include "json_node.h"

#include <cmath>

namespace foreload {

namespace {

std::string pointer_step(std::string_view name) {
  std::string step = "/";
  for (const char c : name) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

}  // namespace

JsonNode JsonNode::operator[](std::string_view name) const {
  const Json* found = nullptr;
  if (value_ != nullptr && value_->is_object()) {
    const auto member = value_->find(name);
    if (member != value_->end()) found = &*member;
  }
  return {found, path_ + pointer_step(name)};
}

std::vector<JsonNode> JsonNode::items() const {
  std::vector<JsonNode> nodes;
  if (value_ == nullptr || !value_->is_array()) return nodes;
  for (const Json& item : *value_) nodes.push_back({&item, path_ + "/" + std::to_string(nodes.size())});
  return nodes;
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  std::vector<std::pair<std::string, JsonNode>> nodes;
  if (value_ == nullptr || !value_->is_object()) return nodes;
  for (const auto& member : value_->items()) nodes.emplace_back(member.key(), (*this)[member.key()]);
  return nodes;
}

std::optional<double> JsonNode::number() const {
  if (value_ == nullptr || !value_->is_number()) return std::nullopt;
  const auto number = value_->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::string JsonNode::text() const {
  return value_ != nullptr && value_->is_string() ? value_->get<std::string>() : std::string();
}

}  // namespace foreload
