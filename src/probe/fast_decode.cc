#include "probe/fast_decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "prep/chain.h"
#include "probe/prep_work.h"

namespace foreload {

namespace {

// The chain in one mode, and where its pixels go.
class Mode {
 public:
  static Result<Mode> make(unsigned side, Decode decode) {
    ChainOptions options;
    options.transforms = {random_resized_crop(side)};
    options.dtype = DType::kU8;
    options.decode = decode;
    FORELOAD_ASSIGN(Chain chain, Chain::compile(options));
    return Mode(std::make_unique<Chain>(std::move(chain)));
  }

  Status run(std::span<const std::byte> jpeg, const PrepKey& key) {
    FORELOAD_TRY(runner_.begin(jpeg, key));
    return runner_.finish(pixels_);
  }
  std::span<const std::byte> pixels() const { return pixels_; }

 private:
  explicit Mode(std::unique_ptr<Chain> chain)
      : chain_(std::move(chain)), runner_(*chain_), pixels_(chain_->output().bytes()) {}

  std::unique_ptr<Chain> chain_;
  ChainRunner runner_;
  std::vector<std::byte> pixels_;
};

PixelDifference difference(std::span<const std::byte> a, std::span<const std::byte> b) {
  std::uint64_t levels = 0, squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int distance = std::to_integer<int>(a[i]) - std::to_integer<int>(b[i]);
    levels += static_cast<std::uint64_t>(std::abs(distance));
    squares += static_cast<std::uint64_t>(distance * distance);
  }
  const auto count = static_cast<double>(a.size());
  return {1, static_cast<double>(levels) / count, static_cast<double>(squares) / count};
}

// All crops have equally many pixels, so that means of means are means.
void add(const PixelDifference& one, PixelDifference& sum) {
  ++sum.crops;
  sum.mean_levels += one.mean_levels;
  sum.mean_square += one.mean_square;
}

void divide(PixelDifference& sum) {
  const auto count = static_cast<double>(std::max<std::uint64_t>(sum.crops, 1));
  sum.mean_levels /= count;
  sum.mean_square /= count;
}

// As the chain decides.
bool decodes_smaller(const Box& crop, unsigned side) {
  Geometry geometry;
  geometry.begin({crop.width, crop.height});
  return geometry.resize({side, side}).ok() && geometry.smallest_scale() < 8;
}

}  // namespace

double PixelDifference::psnr() const {
  return 10 * std::log10(255.0 * 255.0 / mean_square);
}

Result<FastDecode> measure_fast_decode(const PrepPictures& pictures, const FastDecodeOptions& options) {
  FORELOAD_ASSIGN(Mode exact, Mode::make(options.side, Decode::kExact));
  FORELOAD_ASSIGN(Mode fast, Mode::make(options.side, Decode::kFast));
  FastDecode sum;
  sum.worst_psnr = std::numeric_limits<double>::infinity();
  for (unsigned round = 0; sum.all.crops < options.crops; ++round) {
    const std::vector<Box> crops = crops_of_round(pictures, round);
    for (std::size_t i = 0; i < crops.size(); ++i) {
      if (options.stop && options.stop()) return Error{Code::kCancelled, "stopped by a signal"};
      FORELOAD_ASSIGN(const double slow, timed([&] { return exact.run(pictures.raw[i], prep_key(round, i)); }));
      FORELOAD_ASSIGN(const double quick, timed([&] { return fast.run(pictures.raw[i], prep_key(round, i)); }));
      sum.exact_seconds += slow;
      sum.fast_seconds += quick;
      const PixelDifference one = difference(exact.pixels(), fast.pixels());
      add(one, sum.all);
      if (!decodes_smaller(crops[i], options.side)) continue;
      add(one, sum.scaled);
      if (one.mean_square > 0) sum.worst_psnr = std::min(sum.worst_psnr, one.psnr());
    }
  }
  divide(sum.all);
  divide(sum.scaled);
  return sum;
}

}  // namespace foreload
