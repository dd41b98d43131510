// XmlReader: the little of XML that object stores answer with: elements and text. Everything else (document types,
// CDATA, comments, own entities) is refused, and depth and lengths are bounded: the bytes are untrusted. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"

namespace foreload {

inline constexpr std::size_t kDeepestXml = 16;
inline constexpr std::size_t kLongestXmlText = 16 << 10;
inline constexpr std::size_t kLongestXmlName = 128;

class XmlReader {
 public:
  enum class Event { kStart, kEnd, kDone };

  // `text` must outlive this.
  explicit XmlReader(std::string_view text) : text_(text) {}

  // The next begin or end of an element. kDone: the document is complete. kInvalid names what is wrong and where.
  Result<Event> next();
  // Of the element that just began or ended, without namespace.
  const std::string& name() const { return name_; }
  // At the end of an element: its own text, with entities resolved.
  const std::string& value() const { return value_; }
  std::size_t depth() const { return open_.size(); }  // elements that are open, the one that began included

 private:
  Status skip_declaration();
  Status read_text();
  Status read_entity();
  Result<Event> read_tag();
  Status read_attributes();
  Status read_name(std::string& name);
  void skip_blanks();
  char at() const { return place_ < text_.size() ? text_[place_] : '\0'; }
  Error wrong(const char* what) const;
  void end_element();

  const std::string_view text_;
  std::size_t place_ = 0;
  std::vector<std::string> open_;  // names as written
  std::string name_;
  std::string value_;
  bool has_ended_ = false;         // the last event was an end
  bool is_empty_element_ = false;  // <a/>: its end comes next
  bool is_complete_ = false;       // the root has ended
};

}  // namespace foreload
