// How wide text is in a picture, without a font at hand: a bound that holds for the wide ones among the usual
// sans-serif fonts (DejaVu Sans, Verdana), so that labels which do not overlap by it do not overlap anywhere.
#pragma once

#include <string>
#include <string_view>

namespace foreload {

double text_width(std::string_view text, double font_size);

// Shortened, with "…" in its middle, until it is at most `width` wide; empty where not even "…" fits.
std::string fitted(std::string_view text, double font_size, double width);

}  // namespace foreload
