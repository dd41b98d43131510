#include "store/xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace foreload {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':';
}

std::string without_namespace(const std::string& name) {
  return name.substr(name.rfind(':') + 1);
}

// Surrogates and what XML does not allow: 0.
std::uint32_t character_of(std::string_view digits, int base) {
  std::uint32_t code = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
  if (digits.empty() || error != std::errc() || stop != digits.data() + digits.size()) return 0;
  const bool is_control = code < 0x20 && code != '\t' && code != '\n' && code != '\r';
  const bool is_allowed = !is_control && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return is_allowed ? code : 0;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto more = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    more(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    more(6);
    more(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    more(12);
    more(6);
    more(0);
  }
}

}  // namespace

Error XmlReader::wrong(const char* what) const {
  return {Code::kInvalid, fmt::format("the answer is no usable XML ({} at byte {})", what, place_)};
}

void XmlReader::skip_blanks() {
  while (is_blank(at())) ++place_;
}

Status XmlReader::skip_declaration() {
  if (text_.substr(0, 3) == "\xef\xbb\xbf") place_ = 3;
  skip_blanks();
  if (text_.substr(place_, 5) != "<?xml") return {};
  const std::size_t end = text_.find("?>", place_);
  if (end == std::string_view::npos) return wrong("a declaration without end");
  place_ = end + 2;
  return {};
}

Status XmlReader::read_name(std::string& name) {
  const std::size_t first = place_;
  while (is_name_character(at())) ++place_;
  if (place_ == first) return wrong("a name is missing");
  if (place_ - first > kLongestXmlName) return wrong("a name is too long");
  name = text_.substr(first, place_ - first);
  return {};
}

Status XmlReader::read_entity() {
  constexpr std::array<std::pair<std::string_view, char>, 5> kNamed{
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  constexpr std::size_t kLongest = 10;
  const std::size_t length = text_.substr(place_ + 1, kLongest).find(';');
  if (length == std::string_view::npos) return wrong("an entity without end");
  const std::string_view entity = text_.substr(place_ + 1, length);
  if (entity.substr(0, 1) == "#") {
    const bool is_hex = entity.substr(0, 2) == "#x";
    const std::uint32_t code = character_of(entity.substr(is_hex ? 2 : 1), is_hex ? 16 : 10);
    if (code == 0) return wrong("a character that is none");
    append_utf8(value_, code);
  } else {
    const auto known =
        std::find_if(kNamed.begin(), kNamed.end(), [&](const auto& each) { return each.first == entity; });
    if (known == kNamed.end()) return wrong("an entity that is not known");
    value_ += known->second;
  }
  place_ += length + 2;
  return {};
}

Status XmlReader::read_text() {
  while (place_ < text_.size() && at() != '<') {
    if (at() == '&') {
      FORELOAD_TRY(read_entity());
    } else {
      if (at() == '\0' || (open_.empty() && !is_blank(at()))) return wrong("text where none belongs");
      value_ += text_[place_++];
    }
    if (value_.size() > kLongestXmlText) return wrong("a text is too long");
  }
  return {};
}

Status XmlReader::read_attributes() {
  std::string name;
  for (;;) {  // ends: every turn reads a name, or leaves
    const std::size_t before = place_;
    skip_blanks();
    if (at() == '>' || at() == '/') return {};
    if (place_ == before) return wrong("a tag is not in order");
    FORELOAD_TRY(read_name(name));
    if (at() != '=') return wrong("an attribute without value");
    ++place_;
    const char quote = at();
    if (quote != '"' && quote != '\'') return wrong("an attribute without quotes");
    const std::size_t end = text_.find(quote, place_ + 1);
    if (end == std::string_view::npos || end - place_ > kLongestXmlText) return wrong("an attribute without end");
    if (text_.substr(place_, end - place_).find('<') != std::string_view::npos) return wrong("a < in an attribute");
    place_ = end + 1;
  }
}

void XmlReader::end_element() {
  name_ = without_namespace(open_.back());
  open_.pop_back();
  has_ended_ = true;
  is_complete_ = open_.empty();
}

Result<XmlReader::Event> XmlReader::read_tag() {
  ++place_;  // <
  std::string name;
  if (at() == '/') {
    ++place_;
    FORELOAD_TRY(read_name(name));
    skip_blanks();
    if (at() != '>') return wrong("a tag without end");
    if (open_.empty() || open_.back() != name) return wrong("an end without its beginning");
    ++place_;
    end_element();
    return Event::kEnd;
  }
  if (at() == '!' || at() == '?') return wrong("only elements and text are expected");
  if (is_complete_) return wrong("a second root");
  if (open_.size() >= kDeepestXml) return wrong("it is nested too deep");
  FORELOAD_TRY(read_name(name));
  FORELOAD_TRY(read_attributes());
  is_empty_element_ = at() == '/';
  if (is_empty_element_) ++place_;
  if (at() != '>') return wrong("a tag without end");
  ++place_;
  value_.clear();
  name_ = without_namespace(name);
  open_.push_back(std::move(name));
  return Event::kStart;
}

Result<XmlReader::Event> XmlReader::next() {
  if (place_ == 0) FORELOAD_TRY(skip_declaration());
  if (is_empty_element_) {
    is_empty_element_ = false;
    end_element();
    return Event::kEnd;
  }
  // Text behind a child belongs to nobody: only an element without children has a value.
  if (std::exchange(has_ended_, false)) value_.clear();
  FORELOAD_TRY(read_text());
  if (place_ < text_.size()) return read_tag();
  if (!is_complete_) return wrong("it ends too early");
  return Event::kDone;
}

}  // namespace foreload
