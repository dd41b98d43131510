// Element: a piece of a page, of HTML or of an inline SVG. Text and attribute values are escaped when they are put in,
// so that no name of a file can become markup; there is no way to put markup in as text. Names of tags and attributes
// are the program's own words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foreload {

inline constexpr std::size_t kLongestText = 300;  // code points; longer text loses its middle

// As it may stand between tags and in quoted attributes. What is no UTF-8 becomes U+FFFD, and so do characters that
// change the direction of what follows; control characters become their pictures (U+2400…).
std::string escaped(std::string_view text, std::size_t longest = kLongestText);

class Element {
 public:
  explicit Element(std::string_view tag) : tag_(tag) {}

  Element& set(std::string_view name, std::string_view value, std::size_t longest = kLongestText);
  Element& set(std::string_view name, const char* value) { return set(name, std::string_view(value)); }
  Element& set(std::string_view name, double place);  // a coordinate: at most two decimals
  Element& text(std::string_view text, std::size_t longest = kLongestText);
  // The same with its ends of lines kept, for <pre>.
  Element& lines(std::string_view text, std::size_t longest = kLongestText);
  Element& add(const Element& child);

  bool is_empty() const { return inside_.empty(); }
  std::string to_string() const;

 private:
  std::string tag_;
  std::string attributes_;
  std::string inside_;
};

}  // namespace foreload
