// Plain loops that compilers turn into vectors, and the sums of the blur with Highway, whose running sums must stay in
// registers. Nothing of the standard library is called between the namespace marks: it would be compiled for the wrong
// machine. Blends are float: exact for gray, whose terms stay below 2^24. Hue in passes, each over one kind of number.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "prep/stroke_loops.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first.
#include <hwy/highway.h>

#include "prep/rows.h"
#include "prep/stroke_loops.h"

HWY_BEFORE_NAMESPACE();
namespace foreload {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

HWY_INLINE std::int32_t blended(float level, float value, float factor) {
  float mixed = level + factor * (value - level);
  mixed = mixed < 0.0f ? 0.0f : mixed;
  mixed = mixed > 255.0f ? 255.0f : mixed;
  return static_cast<std::int32_t>(mixed);
}

HWY_INLINE float channel_of(std::uint32_t pixel, unsigned shift) {
  return static_cast<float>(static_cast<std::int32_t>(pixel >> shift & 255));
}

HWY_INLINE std::int32_t gray_of(std::uint32_t pixel) {
  const float sum =
      channel_of(pixel, 0) * 19595.0f + channel_of(pixel, 8) * 38470.0f + channel_of(pixel, 16) * 7471.0f + 32768.0f;
  return static_cast<std::int32_t>(sum) >> 16;
}

void blend(std::uint8_t* HWY_RESTRICT row, std::size_t bytes, float level, float factor) {
  for (std::size_t i = 0; i < bytes; ++i) {
    row[i] = static_cast<std::uint8_t>(blended(level, static_cast<float>(static_cast<std::int32_t>(row[i])), factor));
  }
}

void saturate(std::uint32_t* HWY_RESTRICT pixels, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t pixel = pixels[i];
    const auto level = static_cast<float>(gray_of(pixel));
    const std::int32_t red = blended(level, channel_of(pixel, 0), factor);
    const std::int32_t green = blended(level, channel_of(pixel, 8), factor);
    const std::int32_t blue = blended(level, channel_of(pixel, 16), factor);
    pixels[i] = static_cast<std::uint32_t>(red | green << 8 | blue << 16);
  }
}

void sharpen(const StrokeLoops::Smooth& rows, std::uint8_t* HWY_RESTRICT out, std::size_t bytes) {
  const std::uint8_t* HWY_RESTRICT above = rows.above;
  const std::uint8_t* HWY_RESTRICT here = rows.here;
  const std::uint8_t* HWY_RESTRICT below = rows.below;
  const float factor = rows.factor;
  for (std::size_t i = kPixelBytes; i + kPixelBytes < bytes; ++i) {
    const std::size_t left = i - kPixelBytes;
    const std::size_t right = i + kPixelBytes;
    const std::int32_t sum = above[left] + above[i] + above[right] + here[left] + 5 * here[i] + here[right] +
                             below[left] + below[i] + below[right];
    // (2 · sum + 13) / 26, rounded down: the factor is exact for all sums up to 13 · 255.
    const std::int32_t smooth = (2 * sum + 13) * 20165 >> 19;
    out[i] = static_cast<std::uint8_t>(
        blended(static_cast<float>(smooth), static_cast<float>(static_cast<std::int32_t>(here[i])), factor));
  }
}

void gray(std::uint32_t* HWY_RESTRICT pixels, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto level = static_cast<std::uint32_t>(gray_of(pixels[i]));
    pixels[i] = level | level << 8 | level << 16;
  }
}

std::uint32_t gray_sum(const std::uint32_t* HWY_RESTRICT pixels, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<std::uint32_t>(gray_of(pixels[i]));
  return sum;
}

// All bits or none. Selections are masks, because compilers turn a choice between numbers into jumps.
HWY_INLINE std::int32_t mask(bool is) {
  return -static_cast<std::int32_t>(is);
}

HWY_INLINE std::int32_t chosen(std::int32_t which, std::int32_t yes, std::int32_t no) {
  return (which & yes) | (~which & no);
}

// The largest channel and the smallest one give the sector of the colour circle; inside it only the middle channel's
// distance from the largest counts.
struct HueBlock {
  float hue[kPixelBlock];
  float saturation[kPixelBlock];
  std::int32_t value[kPixelBlock];
  std::int32_t sector[kPixelBlock];
  std::int32_t middle[kPixelBlock];
  std::int32_t low[kPixelBlock];
};

void find_hue(const std::uint32_t* HWY_RESTRICT pixels, std::size_t count, HueBlock& block) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto red = static_cast<std::int32_t>(pixels[i] & 255);
    const auto green = static_cast<std::int32_t>(pixels[i] >> 8 & 255);
    const auto blue = static_cast<std::int32_t>(pixels[i] >> 16 & 255);
    const std::int32_t more = red > green ? red : green;
    const std::int32_t most = more > blue ? more : blue;
    const std::int32_t less = red < green ? red : green;
    const std::int32_t least = less < blue ? less : blue;
    const std::int32_t spread = most - least;
    const auto divisor = static_cast<float>(spread + (spread == 0));
    const float part = static_cast<float>(2 * most - red - green - blue + least) / divisor;
    // base + sign · part: red -1 + or 1 -, green 3 - or 1 +, blue 5 - or 3 +.
    const std::int32_t green_least = green == least;
    const std::int32_t red_least = red == least;
    const std::int32_t if_red = mask(red == most);
    const std::int32_t if_green = mask(green == most) & ~if_red;
    const std::int32_t if_blue = ~(if_red | if_green);
    const std::int32_t base =
        ((1 - 2 * green_least) & if_red) | ((1 + 2 * red_least) & if_green) | ((3 + 2 * green_least) & if_blue);
    const std::int32_t sign =
        ((2 * green_least - 1) & if_red) | ((1 - 2 * red_least) & if_green) | ((1 - 2 * green_least) & if_blue);
    block.hue[i] = static_cast<float>(base) + static_cast<float>(sign) * part;
    block.saturation[i] = static_cast<float>(spread) / static_cast<float>(most + (most == 0));
    block.value[i] = most;
  }
}

// Half is rounded up. REQUIRES: x >= 0.
HWY_INLINE std::int32_t rounded(double x) {
  const auto floor = static_cast<std::int32_t>(x);
  return floor + static_cast<std::int32_t>(2.0 * (x - static_cast<double>(floor)));
}

// To 8 bits, turned, and back: what is lost on the way is lost in Pillow as well.
void turn_hue(std::size_t count, int shift, HueBlock& block) {
  for (std::size_t i = 0; i < count; ++i) {
    const double turn = static_cast<double>(block.hue[i]) / 6.0 + 1.0;  // below 2
    const auto circle = static_cast<float>(turn - static_cast<double>(static_cast<std::int32_t>(turn)));
    const auto hue = static_cast<std::int32_t>(static_cast<double>(circle) * 255.0);
    const auto strength = static_cast<std::int32_t>(static_cast<double>(block.saturation[i]) * 255.0);
    const double place = static_cast<double>((hue + shift) & 255) * 6.0 / 255.0;
    const auto sector = static_cast<std::int32_t>(place);
    const auto rest = static_cast<float>(place - static_cast<double>(sector));
    const auto saturation = static_cast<float>(static_cast<double>(strength) / 255.0);
    const auto value = static_cast<double>(block.value[i]);
    // In odd sectors the middle channel falls, in even ones it rises.
    const auto falling = static_cast<double>(saturation * rest);
    const double rising = static_cast<double>(saturation) * (1.0 - static_cast<double>(rest));
    const auto odd = static_cast<double>(sector & 1);
    const double drop = odd * falling + (1.0 - odd) * rising;
    block.low[i] = rounded(value * (1.0 - static_cast<double>(saturation)));
    block.middle[i] = rounded(value * (1.0 - drop));
    block.sector[i] = sector & mask(sector < 6);
  }
}

void shift_hue(std::uint32_t* HWY_RESTRICT pixels, std::size_t count, int shift) {
  HueBlock block;
  find_hue(pixels, count, block);
  turn_hue(count, shift, block);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t sector = block.sector[i];
    const std::int32_t high = block.value[i];
    const std::int32_t middle = block.middle[i];
    const std::int32_t low = block.low[i];
    const std::int32_t is_0 = mask(sector == 0), is_1 = mask(sector == 1), is_2 = mask(sector == 2);
    const std::int32_t is_3 = mask(sector == 3), is_4 = mask(sector == 4), is_5 = mask(sector == 5);
    const std::int32_t red = chosen(is_0 | is_5, high, chosen(is_1 | is_4, middle, low));
    const std::int32_t green = chosen(is_1 | is_2, high, chosen(is_0 | is_3, middle, low));
    const std::int32_t blue = chosen(is_3 | is_4, high, chosen(is_2 | is_5, middle, low));
    pixels[i] = static_cast<std::uint32_t>(red | green << 8 | blue << 16);
  }
}

void bilinear(const StrokeLoops::Corners& corners, std::size_t count, std::uint32_t* HWY_RESTRICT out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = 0;
  for (unsigned shift = 0; shift < 24; shift += 8) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto upper_left = static_cast<std::int32_t>(corners.upper_left[i] >> shift & 255);
      const auto upper_right = static_cast<std::int32_t>(corners.upper_right[i] >> shift & 255);
      const auto lower_left = static_cast<std::int32_t>(corners.lower_left[i] >> shift & 255);
      const auto lower_right = static_cast<std::int32_t>(corners.lower_right[i] >> shift & 255);
      const double above = upper_left + (upper_right - upper_left) * corners.right[i];
      const double below = lower_left + (lower_right - lower_left) * corners.right[i];
      const auto value = static_cast<std::int32_t>(above + (below - above) * corners.lower[i]);
      out[i] |= static_cast<std::uint32_t>(value) << shift;
    }
  }
}

// Four vectors at once, so that additions need not wait for each other. `use` takes them one by one.
template <typename Use>
HWY_INLINE void sum_rows(const StrokeLoops::Sum& sum, std::size_t count, Use use) {
  const Tag tag;
  const std::size_t lanes = hn::Lanes(tag);
  const std::size_t middle = sum.taps / 2;
  for (std::size_t i = 0; i < count; i += 4 * lanes) {
    const Vector centre = hn::Set(tag, sum.weights[middle]);
    const float* row = sum.rows[middle] + i;
    Vector a = hn::Mul(centre, hn::LoadU(tag, row));
    Vector b = hn::Mul(centre, hn::LoadU(tag, row + lanes));
    Vector c = hn::Mul(centre, hn::LoadU(tag, row + 2 * lanes));
    Vector d = hn::Mul(centre, hn::LoadU(tag, row + 3 * lanes));
    for (std::size_t tap = 0; tap < middle; ++tap) {
      const Vector weight = hn::Set(tag, sum.weights[tap]);
      const float* one = sum.rows[tap] + i;
      const float* other = sum.rows[sum.taps - 1 - tap] + i;
      const auto pair = [&](std::size_t at) HWY_ATTR {
        return hn::Mul(weight, hn::Add(hn::LoadU(tag, one + at), hn::LoadU(tag, other + at)));
      };
      a = hn::Add(a, pair(0));
      b = hn::Add(b, pair(lanes));
      c = hn::Add(c, pair(2 * lanes));
      d = hn::Add(d, pair(3 * lanes));
    }
    use(i, a);
    use(i + lanes, b);
    use(i + 2 * lanes, c);
    use(i + 3 * lanes, d);
  }
}

void add_up(const StrokeLoops::Sum& sum, std::size_t count, float* HWY_RESTRICT out) {
  sum_rows(sum, count, [out](std::size_t i, Vector value) HWY_ATTR { hn::StoreU(value, Tag(), out + i); });
}

void add_up_bytes(const StrokeLoops::Sum& sum, std::size_t count, std::uint8_t* HWY_RESTRICT out) {
  const hn::Rebind<std::uint8_t, Tag> bytes;
  sum_rows(sum, count, [&](std::size_t i, Vector value) HWY_ATTR {
    // Half goes to the even number, as in torch. Sums are 0 … 255, give or take a rounding.
    hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(value)), bytes, out + i);
  });
}

constexpr StrokeLoops kLoops{blend, saturate, sharpen, gray, gray_sum, shift_hue, add_up, add_up_bytes, bilinear};

}  // namespace

const StrokeLoops* loops() {
  return &kLoops;
}

}  // namespace HWY_NAMESPACE
}  // namespace foreload
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace foreload {

HWY_EXPORT(loops);

const StrokeLoops& stroke_loops() {
  return *HWY_DYNAMIC_DISPATCH(loops)();
}

}  // namespace foreload

#endif
