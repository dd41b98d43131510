#include "prep/stroke.h"

namespace foreload {

namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

Dimensions size_after(const Stroke& stroke, Dimensions size) {
  const auto* border = std::get_if<Border>(&stroke);
  if (!border) return size;
  const Margins& margins = border->margins;
  return {static_cast<std::uint32_t>(size.width + margins.left + margins.right),
          static_cast<std::uint32_t>(size.height + margins.top + margins.bottom)};
}

bool works_in_place(const Stroke& stroke) {
  return !std::holds_alternative<Rotate>(stroke) && !std::holds_alternative<Affine>(stroke) &&
         !std::holds_alternative<Shear>(stroke) && !std::holds_alternative<Border>(stroke);
}

Bytes stroke_bytes(const Stroke& stroke, Dimensions size) {
  if (const auto* wanted = std::get_if<Blur>(&stroke)) return blur_bytes(*wanted, size);
  const auto* enhanced = std::get_if<Enhance>(&stroke);
  // The row and the one above it, as they were.
  if (enhanced && enhanced->kind == Enhance::Kind::kSharpness) {
    return 2 * Scratch::padded(Bytes{size.width} * kPixelBytes);
  }
  return 0;
}

void paint(const Stroke& stroke, const Canvas& from, const Canvas& to, Scratch& scratch) {
  std::visit(Overloaded{
                 [&](const Enhance& s) { enhance(s, to, scratch); },
                 [&](const ShiftHue& s) { shift_hue(s, to); },
                 [&](const MakeGray&) { make_gray(to); },
                 [&](const Posterize& s) { posterize(s, to); },
                 [&](const Solarize& s) { solarize(s, to); },
                 [&](const AutoContrast&) { auto_contrast(to); },
                 [&](const Equalize&) { equalize(to); },
                 [&](const Blur& s) { blur(s, to, scratch); },
                 [&](const Rotate& s) { warp(matrix_of(s, from.size), s.sampling, from, to); },
                 [&](const Affine& s) { warp(matrix_of(s, from.size), s.sampling, from, to); },
                 [&](const Shear& s) { warp(matrix_of(s), s.sampling, from, to); },
                 [&](const Border& s) { add_border(s, from, to); },
             },
             stroke);
}

}  // namespace foreload
