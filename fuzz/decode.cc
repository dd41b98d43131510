// A chain over arbitrary bytes: images through region decode, resize and tensor writer, arrays through the .npy
// header. The first bytes choose the chain and the crop, the rest is the sample.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "prep/chain.h"

namespace {

using foreload::Chain;

Chain compiled(std::vector<foreload::Transform> transforms) {
  // Small limits keep the fuzzer quick; the code is the same.
  auto chain = Chain::compile({.transforms = std::move(transforms), .limits = {.pixels = 1 << 20, .scans = 50}});
  if (!chain) std::abort();
  return std::move(*chain);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array chains{
      compiled({foreload::random_resized_crop(17), foreload::random_flip(), foreload::normalize(foreload::kImageNet)}),
      compiled({foreload::resize(20), foreload::center_crop(31)}),
      compiled({foreload::center_crop(40), foreload::random_flip(1), foreload::resize(9, 12)}),
      compiled({foreload::random_crop(30, 20, 25), foreload::color_jitter(0.4, 0.4, 0.4, 0.2),
                foreload::gaussian_blur(5), foreload::random_vertical_flip(),
                foreload::random_affine(30, {.scale = {0.5, 2}, .bilinear = true}), foreload::resize(24),
                foreload::random_grayscale(0.5), foreload::random_erasing()}),
      compiled({foreload::trivial_augment_wide(), foreload::pad(3, 9), foreload::rand_augment(),
                foreload::random_resized_crop(19), foreload::random_rotation(30)}),
      compiled({foreload::array(foreload::DType::kF32, {2, 3})}),
      compiled({foreload::array(foreload::DType::kU8, {4, 5, 6}), foreload::random_window({2, 3})}),
      compiled({foreload::ragged(foreload::DType::kU16, 9)}),
  };
  if (size < 2) return 0;
  const Chain& chain = chains[data[0] % chains.size()];
  const auto sample = std::as_bytes(std::span(data, size)).subspan(2);
  (void)foreload::image_dimensions(sample);
  (void)foreload::default_chain(sample);
  foreload::ChainRunner runner(chain);
  const auto bytes = runner.begin(sample, {1, 0, data[1]});
  if (!bytes) return 0;
  // A picture of a million pixels fits this, whatever it claims.
  if (*bytes > foreload::Bytes{64} << 20) std::abort();
  std::vector<std::byte> out(chain.output().bytes());
  (void)runner.finish(out);
  return 0;
}
