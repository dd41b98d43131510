// JsonNode: a place in a JSON document that may be there or not, and may be of another kind than expected. Reading it
// never fails: a page is made of what is there. The document outlives its nodes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command.h"
#include "report/number.h"

namespace foreload {

class JsonNode {
 public:
  explicit JsonNode(const Json& document) : value_(&document) {}

  JsonNode operator[](std::string_view name) const;
  std::vector<JsonNode> items() const;  // of a list, otherwise none
  std::vector<std::pair<std::string, JsonNode>> members() const;

  bool is_there() const { return value_ != nullptr && !value_->is_null(); }
  bool is_true() const { return value_ != nullptr && value_->is_boolean() && value_->get<bool>(); }
  std::optional<double> number() const;  // a finite one
  std::string text() const;              // or nothing

  // Where it stands, as a JSON pointer.
  const std::string& path() const { return path_; }
  // For the page. REQUIRES: number()
  Number shown_as(std::string text) const { return {*number(), std::move(text), path_}; }

 private:
  JsonNode(const Json* value, std::string path) : value_(value), path_(std::move(path)) {}

  const Json* value_;
  std::string path_;
};

}  // namespace foreload
