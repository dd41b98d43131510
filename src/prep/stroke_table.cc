// Strokes that look every value up in a table of its channel: Pillow's ImageOps.
#include <algorithm>

#include "prep/stroke.h"

namespace foreload {

namespace {

using Table = std::array<std::uint8_t, 256>;
using Tables = std::array<Table, 3>;
using Histogram = std::array<std::uint64_t, 256>;

void look_up(const Tables& tables, const Canvas& canvas) {
  for (std::size_t y = 0; y < canvas.size.height; ++y) {
    std::uint8_t* pixel = canvas.row(y);
    for (std::size_t x = 0; x < canvas.size.width; ++x, pixel += kPixelBytes) {
      pixel[0] = tables[0][pixel[0]];
      pixel[1] = tables[1][pixel[1]];
      pixel[2] = tables[2][pixel[2]];
    }
  }
}

template <typename Function>
void look_up_each(const Canvas& canvas, Function function) {
  Table table;
  for (unsigned value = 0; value < 256; ++value) table[value] = static_cast<std::uint8_t>(function(value));
  look_up({table, table, table}, canvas);
}

std::array<Histogram, 3> histograms(const Canvas& canvas) {
  std::array<Histogram, 3> counts{};
  for (std::size_t y = 0; y < canvas.size.height; ++y) {
    const std::uint8_t* pixel = canvas.row(y);
    for (std::size_t x = 0; x < canvas.size.width; ++x, pixel += kPixelBytes) {
      ++counts[0][pixel[0]];
      ++counts[1][pixel[1]];
      ++counts[2][pixel[2]];
    }
  }
  return counts;
}

Table unchanged() {
  Table table;
  for (unsigned value = 0; value < 256; ++value) table[value] = static_cast<std::uint8_t>(value);
  return table;
}

// The darkest value becomes 0, the brightest 255.
Table stretched(const Histogram& counts) {
  int low = 0;
  int high = 255;
  while (low < 255 && counts[static_cast<std::size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<std::size_t>(high)] == 0) --high;
  if (high <= low) return unchanged();
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  Table table;
  for (int value = 0; value < 256; ++value) {
    const int wanted = static_cast<int>(value * scale + offset);
    table[static_cast<std::size_t>(value)] = static_cast<std::uint8_t>(std::clamp(wanted, 0, 255));
  }
  return table;
}

// Every value becomes the share of values below it.
Table flattened(const Histogram& counts) {
  std::uint64_t sum = 0;
  std::uint64_t last = 0;
  for (const std::uint64_t count : counts) {
    sum += count;
    if (count > 0) last = count;
  }
  const std::uint64_t step = (sum - last) / 255;
  if (step == 0) return unchanged();
  Table table;
  std::uint64_t below = step / 2;
  for (std::size_t value = 0; value < 256; ++value) {
    table[value] = static_cast<std::uint8_t>(std::min<std::uint64_t>(below / step, 255));
    below += counts[value];
  }
  return table;
}

void look_up_own(const Canvas& canvas, Table (*make)(const Histogram&)) {
  const auto counts = histograms(canvas);
  look_up({make(counts[0]), make(counts[1]), make(counts[2])}, canvas);
}

}  // namespace

void posterize(const Posterize& stroke, const Canvas& canvas) {
  const unsigned mask = ~((1u << (8 - stroke.bits)) - 1);
  look_up_each(canvas, [mask](unsigned value) { return value & mask; });
}

void solarize(const Solarize& stroke, const Canvas& canvas) {
  look_up_each(canvas, [&](unsigned value) { return value < stroke.threshold ? value : 255 - value; });
}

void auto_contrast(const Canvas& canvas) {
  look_up_own(canvas, stretched);
}

void equalize(const Canvas& canvas) {
  look_up_own(canvas, flattened);
}

}  // namespace foreload
