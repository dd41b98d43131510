#include "prep/erase.h"

#include <algorithm>

#include "prep/output.h"

namespace foreload {

namespace {

constexpr std::size_t kChannels = 3;

template <typename T>
void fill(const ImageTensor& tensor, const Box& box, const std::array<T, kChannels>& element) {
  T* out = reinterpret_cast<T*>(tensor.out.data());
  const std::size_t width = tensor.size.width;
  const std::size_t plane = width * tensor.size.height;
  for (std::size_t y = box.y; y < std::size_t{box.y} + box.height; ++y) {
    const std::size_t first = y * width + box.x;
    if (tensor.layout == Layout::kNchw) {
      for (std::size_t c = 0; c < kChannels; ++c) std::fill_n(out + c * plane + first, box.width, element[c]);
    } else {
      for (std::size_t i = 0; i < box.width; ++i) {
        std::copy(element.begin(), element.end(), out + (first + i) * kChannels);
      }
    }
  }
}

}  // namespace

void erase(const ImageTensor& tensor, const Box& box, const std::array<double, 3>& value,
           const std::optional<MeanStd>& normalize) {
  std::array<float, kChannels> f32;
  std::array<std::uint16_t, kChannels> f16;
  std::array<std::uint8_t, kChannels> u8;
  for (std::size_t c = 0; c < kChannels; ++c) {
    f32[c] = static_cast<float>(value[c]);
    if (normalize) f32[c] = (f32[c] - static_cast<float>(normalize->mean[c])) / static_cast<float>(normalize->std[c]);
    f16[c] = to_half(f32[c]);
    u8[c] = static_cast<std::uint8_t>(std::clamp(value[c], 0.0, 255.0));
  }
  if (tensor.dtype == DType::kF32) fill(tensor, box, f32);
  if (tensor.dtype == DType::kF16) fill(tensor, box, f16);
  if (tensor.dtype == DType::kU8) fill(tensor, box, u8);
}

}  // namespace foreload
