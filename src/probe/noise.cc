// A pyramid: the coarsest level is noise alone; each finer level is the coarser one, enlarged twofold by
// linear interpolation, plus fresh noise. So the whole costs 4/3 of its finest level.
#include "probe/noise.h"

#include <algorithm>
#include <cstring>

namespace foreload {

namespace {

struct Level {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<std::int16_t> values;

  const std::int16_t* row(std::size_t y) const { return values.data() + y * width; }
  std::int16_t* row(std::size_t y) { return values.data() + y * width; }
};

Level make_level(std::size_t width, std::size_t height) {
  return {width, height, std::vector<std::int16_t>(width * height)};
}

// Adds uniform noise in ±28 · strength / 256.
void add_noise(Level& level, NoiseBits& bits, int strength) {
  std::int8_t bytes[8];
  const std::size_t count = level.values.size();
  for (std::size_t i = 0; i < count; i += sizeof bytes) {
    const std::uint64_t word = bits.next();
    std::memcpy(bytes, &word, sizeof bytes);
    const std::size_t some = std::min(sizeof bytes, count - i);
    for (std::size_t k = 0; k < some; ++k) {
      level.values[i + k] = static_cast<std::int16_t>(level.values[i + k] + ((bytes[k] * strength * 7) >> 13));
    }
  }
}

// One output row of the enlargement: three quarters of the near row, one quarter of the far one; then the
// same along the row.
void enlarge_row(const std::int16_t* near, const std::int16_t* far, std::vector<std::int16_t>& mixed, Level& out,
                 std::size_t y) {
  const std::size_t n = mixed.size();
  for (std::size_t x = 0; x < n; ++x) mixed[x] = static_cast<std::int16_t>((3 * near[x] + far[x] + 2) >> 2);
  std::int16_t* to = out.row(y);
  for (std::size_t x = 0; x < out.width / 2; ++x) {
    to[2 * x] = static_cast<std::int16_t>((3 * mixed[x] + mixed[x > 0 ? x - 1 : 0] + 2) >> 2);
    to[2 * x + 1] = static_cast<std::int16_t>((3 * mixed[x] + mixed[std::min(x + 1, n - 1)] + 2) >> 2);
  }
  if (out.width % 2 == 1) to[out.width - 1] = mixed[out.width / 2];
}

Level enlarge(const Level& from, std::size_t width, std::size_t height) {
  Level out = make_level(width, height);
  std::vector<std::int16_t> mixed(from.width);
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t near = y / 2;
    const std::size_t far = y % 2 == 0 ? (near > 0 ? near - 1 : 0) : std::min(near + 1, from.height - 1);
    enlarge_row(from.row(near), from.row(far), mixed, out, y);
  }
  return out;
}

Level build(NoiseBits& bits, const NoiseShape& shape, unsigned octave) {
  const std::size_t width = ((shape.width - 1) >> octave) + 1;
  const std::size_t height = ((shape.height - 1) >> octave) + 1;
  Level level =
      octave + 1 >= shape.octaves ? make_level(width, height) : enlarge(build(bits, shape, octave + 1), width, height);
  const int strength = octave == 0 ? shape.finest : 256;
  if (strength > 0) add_noise(level, bits, strength);
  return level;
}

}  // namespace

std::vector<std::int16_t> noise_plane(std::uint64_t seed, const NoiseShape& shape) {
  NoiseBits bits(seed);
  return build(bits, shape, 0).values;
}

}  // namespace foreload
