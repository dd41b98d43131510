// Shapes are painted back to front into a plane of labels, one memset per row and shape. Each label has a
// colour and a share of the texture: skies are smooth, leaves are not. Colours are then looked up with a
// 2 × 2 average, which gives edges the softness that a lens gives them.
#include "probe/scene.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "probe/noise.h"

namespace foreload {

namespace {

constexpr unsigned kMinShapes = 15;
constexpr unsigned kMaxShapes = 120;

struct Look {
  std::array<std::uint8_t, 3> colour;  // Y, Cb, Cr
  int texture = 0;                     // of 256
};

// A leaning ellipse.
struct Shape {
  double x = 0, y = 0;
  double half_width = 0, half_height = 0;
  double lean = 0;  // columns per row
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : bits_(seed) {}
  double unit() { return static_cast<double>(bits_.next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }

 private:
  NoiseBits bits_;
};

Look draw_look(Draw& draw) {
  const auto level = [&](double low, double high) { return static_cast<std::uint8_t>(draw.between(low, high)); };
  Look look{{level(30, 220), level(104, 152), level(104, 152)}, 0};
  const double share = draw.unit();
  look.texture = 24 + static_cast<int>(232 * share * share);
  return look;
}

// Sizes follow the power law of real scenes: many small things before few large ones.
Shape draw_shape(Draw& draw, unsigned width, unsigned height) {
  const double large = 0.45 * std::max(width, height);
  const double small = std::max(3.0, 0.015 * std::max(width, height));
  const double u = draw.unit();
  const double radius = small * large / (large + u * (small - large));
  const double aspect = draw.between(0.5, 2.0);
  return {draw.between(0, width), draw.between(0, height), radius * aspect, radius, draw.between(-0.8, 0.8)};
}

class LabelPlane {
 public:
  LabelPlane(unsigned width, unsigned height) : width_(width), height_(height), labels_(std::size_t{width} * height) {}

  void fill(const Shape& shape, std::uint8_t label) {
    const int first = std::max(0, static_cast<int>(shape.y - shape.half_height));
    const int last = std::min(static_cast<int>(height_) - 1, static_cast<int>(shape.y + shape.half_height));
    for (int y = first; y <= last; ++y) {
      const double rise = (y - shape.y) / shape.half_height;
      if (rise * rise >= 1) continue;
      const double reach = shape.half_width * std::sqrt(1 - rise * rise);
      const double middle = shape.x + shape.lean * (y - shape.y);
      const int from = std::clamp(static_cast<int>(middle - reach), 0, static_cast<int>(width_));
      const int to = std::clamp(static_cast<int>(middle + reach), 0, static_cast<int>(width_));
      std::memset(&labels_[static_cast<std::size_t>(y) * width_] + from, label, static_cast<std::size_t>(to - from));
    }
  }
  const std::uint8_t* row(unsigned y) const { return labels_.data() + std::size_t{y} * width_; }

 private:
  unsigned width_;
  unsigned height_;
  std::vector<std::uint8_t> labels_;
};

// What the lookups of one row of one plane need.
struct PaintedRow {
  const std::uint8_t* here;
  const std::uint8_t* below;
  std::span<std::uint8_t> base;
  std::span<std::int16_t> texture;
};

void paint_row(const PaintedRow& row, const std::vector<Look>& looks, unsigned plane) {
  const int weight = plane == 0 ? 256 : 64;  // colour varies less than brightness
  const std::size_t width = row.base.size();
  for (std::size_t x = 0; x < width; ++x) {
    const std::size_t next = std::min(x + 1, width - 1);
    const unsigned sum = looks[row.here[x]].colour[plane] + looks[row.here[next]].colour[plane] +
                         looks[row.below[x]].colour[plane] + looks[row.below[next]].colour[plane];
    row.base[x] = static_cast<std::uint8_t>((sum + 2) / 4);
    row.texture[x] = static_cast<std::int16_t>((row.texture[x] * looks[row.here[x]].texture * weight) >> 16);
  }
}

std::uint8_t clamp8(int value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

// Y Cb Cr to inverted C M Y K with the black taken out, so that no channel is empty.
void ycc_to_cmyk(const std::array<std::uint8_t, 3>& ycc, std::uint8_t* out) {
  const int y = ycc[0] << 16, cb = ycc[1] - 128, cr = ycc[2] - 128;
  const int red = clamp8((y + 91881 * cr) >> 16);
  const int green = clamp8((y - 22554 * cb - 46802 * cr) >> 16);
  const int blue = clamp8((y + 116130 * cb) >> 16);
  const int black = std::max({red, green, blue, 1});
  out[0] = static_cast<std::uint8_t>(red * 255 / black);
  out[1] = static_cast<std::uint8_t>(green * 255 / black);
  out[2] = static_cast<std::uint8_t>(blue * 255 / black);
  out[3] = static_cast<std::uint8_t>(black);
}

}  // namespace

Scene::Scene(std::uint64_t seed, unsigned width, unsigned height) : width_(width), height_(height) {
  FORELOAD_CHECK(width > 0 && height > 0, "a scene has pixels");
  // Eyes and cameras resolve colour half as finely as brightness.
  planes_[0].texture = noise_plane(seed + 1, {width, height, 6, 160});
  planes_[1].texture = noise_plane(seed + 2, {width, height, 6, 0});
  planes_[2].texture = noise_plane(seed + 3, {width, height, 6, 0});
  paint(seed);
}

void Scene::paint(std::uint64_t seed) {
  Draw draw(seed);
  LabelPlane labels(width_, height_);
  std::vector<Look> looks{draw_look(draw)};
  const auto shapes = static_cast<unsigned>(draw.between(kMinShapes, kMaxShapes));
  for (unsigned i = 1; i <= shapes; ++i) {
    looks.push_back(draw_look(draw));
    labels.fill(draw_shape(draw, width_, height_), static_cast<std::uint8_t>(i));
  }
  for (unsigned plane = 0; plane < 3; ++plane) {
    planes_[plane].base.resize(std::size_t{width_} * height_);
    for (unsigned y = 0; y < height_; ++y) {
      const std::size_t start = std::size_t{y} * width_;
      paint_row({labels.row(y),
                 labels.row(std::min(y + 1, height_ - 1)),
                 {&planes_[plane].base[start], width_},
                 {&planes_[plane].texture[start], width_}},
                looks, plane);
    }
  }
}

std::array<std::uint8_t, 3> Scene::pixel(std::size_t at, int detail) const {
  std::array<std::uint8_t, 3> out;
  for (unsigned plane = 0; plane < 3; ++plane) {
    out[plane] = clamp8(planes_[plane].base[at] + ((planes_[plane].texture[at] * detail) >> 8));
  }
  return out;
}

void Scene::render_row(unsigned y, int detail, JpegColour colour, std::span<std::uint8_t> out) const {
  FORELOAD_CHECK(y < height_ && out.size() == std::size_t{width_} * channels(colour), "the row fits");
  const std::size_t start = std::size_t{y} * width_;
  for (std::size_t x = 0; x < width_; ++x) {
    const std::array<std::uint8_t, 3> ycc = pixel(start + x, detail);
    if (colour == JpegColour::kGray) {
      out[x] = ycc[0];
    } else if (colour == JpegColour::kYcc) {
      std::copy(ycc.begin(), ycc.end(), &out[3 * x]);
    } else {
      ycc_to_cmyk(ycc, &out[4 * x]);
    }
  }
}

}  // namespace foreload
