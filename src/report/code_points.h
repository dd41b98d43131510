// Text of unknown origin as code points.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foreload {

// Every byte that belongs to no valid UTF-8 sequence is one U+FFFD.
std::u32string code_points(std::string_view text);
void append_code_point(std::string& out, char32_t c);
std::string utf8(std::u32string_view text);

// At most `longest` code points: the middle goes, and "…" stands for it.
std::u32string shortened(std::u32string text, std::size_t longest);

}  // namespace foreload
