// First the image's size, colour, quality and bytes are drawn from tables that follow ImageNet: two thirds
// are 500 pixels wide or high at quality 96 without subsampling, as photo sites delivered them; the rest is
// whatever the web had. Then a scene is made, and the strength of its texture is searched for until a JPEG
// of some bands of its rows says that the whole will take the drawn number of bytes.
#include "probe/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>

#include "base/random.h"
#include "probe/scene.h"

namespace foreload {

namespace {

enum Op : std::uint32_t { kSpecOp = 0, kSceneOp = 1 };

class SpecDraw {
 public:
  SpecDraw(std::uint64_t seed, std::uint64_t index) : random_(seed, 0, index, kSpecOp) {}
  double unit() { return random_.unit32() * 0x1p-32; }
  unsigned between(unsigned low, unsigned high) { return low + static_cast<unsigned>(random_.below(high - low + 1)); }
  bool chance(double p) { return unit() < p; }

 private:
  KeyedRandom random_;
};

// A distribution by its values at evenly spaced quantiles.
double at_quantile(std::span<const double> values, double u) {
  const double place = u * static_cast<double>(values.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), values.size() - 2);
  return values[below] + (values[below + 1] - values[below]) * (place - static_cast<double>(below));
}

// Bytes per pixel.
constexpr std::array kWebDensity{0.23, 0.39, 0.47, 0.54, 0.60, 0.70, 0.78, 0.84, 0.88, 0.98, 1.37};
constexpr std::array kFineDensity{0.20, 0.30, 0.34, 0.38, 0.43, 0.45, 0.51, 0.60, 0.85};
constexpr std::array kHalvedDensity{0.085, 0.12, 0.14, 0.17, 0.25, 0.27, 0.29, 0.32, 0.48, 0.70};

struct Size {
  double weight;
  unsigned width;
  unsigned height;
};
constexpr std::array kOtherSizes{Size{0.25, 640, 480},    Size{0.09, 800, 600},        Size{0.045, 1024, 768},
                                 Size{0.02, 1280, 960},   Size{0.02, 1600, 1200},      Size{0.007, 2048, 1536},
                                 Size{0.004, 2592, 1944}, Size{0.22, 500, 0 /* any */}};

void turn_some(SpecDraw& draw, double upright, SyntheticSpec& spec) {
  if (draw.chance(upright)) std::swap(spec.width, spec.height);
}

// As photo sites delivered them: the longer side is 500.
void draw_web_image(SpecDraw& draw, SyntheticSpec& spec) {
  const double u = draw.unit();
  spec.width = 500;
  spec.height = u < 0.46 ? 375 : u < 0.78 ? 333 : u < 0.84 ? 334 : u < 0.87 ? 332 : draw.between(280, 500);
  turn_some(draw, 0.28, spec);
  spec.style.quality = 96;
  spec.target_bytes = static_cast<Bytes>(at_quantile(kWebDensity, draw.unit()) * spec.width * spec.height);
}

void draw_other_size(SpecDraw& draw, SyntheticSpec& spec) {
  double u = draw.unit();
  spec.width = draw.between(160, 480);  // unless one of the table's is drawn
  spec.height = spec.width * draw.between(55, 100) / 100;
  for (const Size& size : kOtherSizes) {
    if (u < size.weight) {
      spec.width = size.width;
      spec.height = size.height > 0 ? size.height : draw.between(280, 500);
      break;
    }
    u -= size.weight;
  }
  turn_some(draw, 0.3, spec);
}

// Everything else that was on the web.
void draw_other_image(SpecDraw& draw, SyntheticSpec& spec) {
  draw_other_size(draw, spec);
  const double sampling = draw.unit();
  const bool fine = sampling < 0.27;
  spec.style.h_sampling = fine ? 1 : 2;
  spec.style.v_sampling = fine || sampling < 0.37 ? 1 : 2;
  // Large originals were compressed harder.
  const bool large = spec.width * spec.height > 700'000;
  const double u = draw.unit() * (large ? 0.8 : 1.0);
  const double density = fine ? at_quantile(kFineDensity, u) : at_quantile(kHalvedDensity, u);
  // Bytes and quality go together.
  const unsigned halved_quality = u < 0.5 ? draw.between(68, 78) : 80 + static_cast<unsigned>(28 * (u - 0.5));
  spec.style.quality = fine ? draw.between(80, 94) : halved_quality;
  spec.target_bytes = static_cast<Bytes>(density * spec.width * spec.height);
}

// The few that a decoder must also know.
void draw_rarity(SpecDraw& draw, SyntheticSpec& spec) {
  const double colour = draw.unit();
  if (colour < 0.020) {
    spec.style.colour = JpegColour::kGray;
    spec.target_bytes = spec.target_bytes * 3 / 4;
  } else if (colour < 0.025) {
    spec.style.colour = draw.chance(0.5) ? JpegColour::kCmyk : JpegColour::kYcck;
  }
  spec.style.progressive = draw.chance(0.02);
  if (spec.style.colour != JpegColour::kYcc) spec.style.h_sampling = spec.style.v_sampling = 1;
}

// Pixel rows of a scene, ready to be compressed.
class RenderedRows {
 public:
  RenderedRows(const Scene& scene, JpegColour colour) : scene_(scene), colour_(colour) {}

  // Bands of 16 rows, one in `every`.
  const std::vector<const std::uint8_t*>& render(int detail, unsigned every) {
    const std::size_t stride = std::size_t{scene_.width()} * channels(colour_);
    pixels_.resize(stride * scene_.height());
    rows_.clear();
    for (unsigned y = 0; y < scene_.height(); ++y) {
      if (y / 16 % every != 0) continue;
      std::uint8_t* row = pixels_.data() + stride * y;
      scene_.render_row(y, detail, colour_, {row, stride});
      rows_.push_back(row);
    }
    return rows_;
  }

 private:
  const Scene& scene_;
  JpegColour colour_;
  std::vector<std::uint8_t> pixels_;
  std::vector<const std::uint8_t*> rows_;
};

constexpr double kHeaderBytes = 600;  // of a JPEG: does not grow with the image

// The detail with which the whole image will take about target_bytes.
int find_detail(RenderedRows& rendered, const SyntheticSpec& spec) {
  const unsigned every = std::max(1u, spec.height / 16 / 6);
  const auto predicted = [&](double log_detail) {
    const auto& rows = rendered.render(static_cast<int>(std::exp2(log_detail)), every);
    const double bytes = static_cast<double>(encode_jpeg(rows, spec.width, spec.style).size());
    return (bytes - kHeaderBytes) * spec.height / static_cast<double>(rows.size()) + kHeaderBytes;
  };
  const auto target = static_cast<double>(spec.target_bytes);
  double low = 0, high = 11.5;  // detail 1 … 2,900
  double guess = 6.5;
  double slope = 0.35 * target;  // bytes per doubling of the detail
  double previous = 0, previous_bytes = 0;
  for (int trial = 0; trial < 5; ++trial) {
    const double bytes = predicted(guess);
    if (std::abs(bytes - target) < 0.04 * target) break;
    if (trial > 0) slope = std::max((bytes - previous_bytes) / (guess - previous), 0.05 * target);
    previous = guess;
    previous_bytes = bytes;
    (bytes < target ? low : high) = guess;
    guess = std::clamp(guess + (target - bytes) / slope, low + 0.05 * (high - low), high - 0.05 * (high - low));
  }
  return static_cast<int>(std::exp2(guess));
}

}  // namespace

SyntheticSpec synthetic_spec(std::uint64_t seed, std::uint64_t index) {
  SpecDraw draw(seed, index);
  SyntheticSpec spec;
  if (draw.chance(0.66)) {
    draw_web_image(draw, spec);
  } else {
    draw_other_image(draw, spec);
  }
  draw_rarity(draw, spec);
  return spec;
}

std::vector<std::byte> synthetic_jpeg(std::uint64_t seed, std::uint64_t index) {
  const SyntheticSpec spec = synthetic_spec(seed, index);
  const Scene scene(KeyedRandom(seed, 0, index, kSceneOp).next_u64(), spec.width, spec.height);
  RenderedRows rendered(scene, spec.style.colour);
  const int detail = find_detail(rendered, spec);
  return encode_jpeg(rendered.render(detail, 1), spec.width, spec.style);
}

}  // namespace foreload
