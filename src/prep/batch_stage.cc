// Shares are multiples of 2^-16, so that they and their complements are exact in every type. Floats: two products and a
// sum, each rounded (the build forbids contraction); u8: integers, rounded to nearest.
#include "prep/batch_stage.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/random.h"
#include "prep/beta.h"
#include "prep/fixed_point.h"
#include "prep/geometry.h"
#include "prep/half.h"

namespace foreload {

void compact_ragged(const BatchBlock& block, std::size_t element_bytes) {
  std::uint64_t end = 0;
  block.offsets[0] = 0;
  for (std::uint64_t i = 0; i < block.count; ++i) {
    // In shared memory: whatever another process wrote there, it stays inside of the tensors.
    const std::uint64_t length = std::min<std::uint64_t>(block.offsets[i + 1], block.sample_bytes / element_bytes);
    std::memmove(block.tensors.data() + end * element_bytes, block.tensors.data() + i * block.sample_bytes,
                 length * element_bytes);
    end += length;
    block.offsets[i + 1] = end;
  }
}

namespace {

struct FloatBlend {
  float own;
  float other;
  float operator()(float a, float b) const { return own * a + other * b; }
  std::uint16_t operator()(std::uint16_t a, std::uint16_t b) const {
    return to_half((*this)(from_half(a), from_half(b)));
  }
};

struct ByteBlend {
  std::uint32_t own;
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const {
    return static_cast<std::uint8_t>((own * a + (kOneQ16 - own) * b + kOneQ16 / 2) >> 16);
  }
};

template <typename T, typename Blend>
void blend_all(std::byte* first, std::byte* second, Bytes bytes, const Blend& blend) {
  T* a = reinterpret_cast<T*>(first);
  T* b = reinterpret_cast<T*>(second);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) {
    const T mixed = blend(a[i], b[i]);
    b[i] = blend(b[i], a[i]);
    a[i] = mixed;
  }
}

float share_of(std::uint32_t q16) {
  return static_cast<float>(q16) / static_cast<float>(kOneQ16);
}

// Returns each one's share of itself.
float mixup(std::byte* a, std::byte* b, const TensorSpec& tensor, std::uint32_t own) {
  const Bytes bytes = tensor.bytes();
  const FloatBlend blend{share_of(own), share_of(kOneQ16 - own)};
  if (tensor.dtype == DType::kU8) {
    blend_all<std::uint8_t>(a, b, bytes, ByteBlend{own});
  } else if (tensor.dtype == DType::kF16) {
    blend_all<std::uint16_t>(a, b, bytes, blend);
  } else {
    blend_all<float>(a, b, bytes, blend);
  }
  return blend.own;
}

// As torchvision: a centre anywhere, sides that would give the area 1 - own, cut off at the picture's edge.
Box draw_box(Dimensions size, std::uint32_t own, KeyedRandom& random) {
  const std::uint64_t root = isqrt(Uint128{kOneQ16 - own} << 16);  // Q16
  const auto axis = [root](std::uint64_t side, std::uint64_t centre) {
    const std::uint64_t half = root * side >> 17;
    const std::uint64_t first = centre > half ? centre - half : 0;
    return std::pair(static_cast<std::uint32_t>(first),
                     static_cast<std::uint32_t>(std::min(side, centre + half) - first));
  };
  const auto [x, width] = axis(size.width, random.below(size.width));
  const auto [y, height] = axis(size.height, random.below(size.height));
  return {x, y, width, height};
}

void swap_bytes(std::byte* a, std::byte* b, std::size_t first, std::size_t bytes) {
  std::swap_ranges(a + first, a + first + bytes, b + first);
}

float cutmix(std::byte* a, std::byte* b, const TensorSpec& tensor, Layout layout, const Box& box) {
  const bool planes = layout == Layout::kNchw;
  const std::size_t width = tensor.shape[planes ? 2 : 1];
  const std::size_t height = tensor.shape[planes ? 1 : 0];
  const std::size_t pixel = dtype_size(tensor.dtype) * (planes ? 1 : tensor.shape[2]);
  for (std::size_t plane = 0; plane < (planes ? tensor.shape[0] : 1); ++plane) {
    for (std::size_t y = box.y; y < std::size_t{box.y} + box.height; ++y) {
      swap_bytes(a, b, ((plane * height + y) * width + box.x) * pixel, box.width * pixel);
    }
  }
  const double area = static_cast<double>(width * height);
  const double swapped = static_cast<double>(std::uint64_t{box.width} * box.height);
  return static_cast<float>((area - swapped) / area);
}

}  // namespace

void mix_pairs(const BatchBlock& block, const MixSpec& spec, const TensorSpec& tensor, Layout layout) {
  for (std::uint64_t i = 0; i < block.count; ++i) block.mixes[i] = {block.labels[i], 1.0f};
  const bool planes = layout == Layout::kNchw;
  const Dimensions size{static_cast<std::uint32_t>(tensor.shape[planes ? 2 : 1]),
                        static_cast<std::uint32_t>(tensor.shape[planes ? 1 : 0])};
  for (std::uint64_t i = 0; i + 1 < block.count; i += 2) {
    const Position position = block.positions[i];
    FORELOAD_CHECK(position % 2 == 0 && block.positions[i + 1] == position + 1, "the assignment keeps pairs together");
    if (position + 1 == block.samples) continue;  // its neighbour is padding
    KeyedRandom random(block.seed, block.epoch, position, spec.op);
    const std::uint32_t own = draw_beta_q16(spec.alpha_q32, random);
    std::byte* a = block.tensors.data() + i * block.sample_bytes;
    std::byte* b = a + block.sample_bytes;
    const float share = spec.kind == MixKind::kMixup ? mixup(a, b, tensor, own)
                                                     : cutmix(a, b, tensor, layout, draw_box(size, own, random));
    block.mixes[i] = {block.labels[i + 1], share};
    block.mixes[i + 1] = {block.labels[i], share};
  }
}

}  // namespace foreload
