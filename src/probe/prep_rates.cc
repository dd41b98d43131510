// Every round draws new crops, and everything is measured with the same ones, one pass after the other:
//
//   decode   the boxes of the raw files, rows thrown away          resize   pixels in memory → 224 × 224 pixels: ours,
//   raw      the chain on the raw files                                     the plain twin's, Pillow's
//   converted  the chain on the converted files                    finish   resize + flip + normalise to the tensor
//   limit    JPEGs that hold the crops' MCUs and nothing else      torchvision   on PIL, one thread
//   fast …   the chain in decode mode fast                         rewrite, copy   with proof; libjpeg's bare one
//
// A figure is the median over the rounds of a ratio inside a round, so what disturbs a round disturbs both sides.
#include "probe/prep_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "prep/resize_kernels.h"
#include "probe/fast_decode.h"
#include "probe/jpeg_crop.h"
#include "probe/loader_rates.h"
#include "probe/prep_pictures.h"
#include "probe/prep_work.h"
#include "probe/python_peer.h"

namespace foreload {

namespace {

constexpr unsigned kResizes = 4;               // passes of what is too quick to be measured once
constexpr std::uint64_t kComparedCrops = 700;  // so that 500 are decoded smaller where the target is small
constexpr double kMostLevels = 2;              // mean difference of fast
constexpr double kLeastPsnr = 38;              // dB
constexpr unsigned kSmallSide = 96;            // a target so small that most crops of a photograph are twice as large

// CPU seconds of a round, by the names above; what was not measured is not there.
using Round = std::map<std::string, double>;

class PrepMeasurement {
 public:
  PrepMeasurement(const PrepRatesOptions& options, PrepPictures pictures, ChainWork exact, ChainWork fast)
      : options_(options),
        pictures_(std::move(pictures)),
        exact_(std::move(exact)),
        fast_(std::move(fast)),
        pixels_(widest(pictures_)) {}

  Result<PrepReport> run() {
    start_peer();
    for (unsigned round = 0; round <= options_.rounds; ++round) {
      FORELOAD_ASSIGN(Round seconds, measure(round));
      if (round > 0) rounds_.push_back(std::move(seconds));  // the first one warms everything up
      if (options_.progress) options_.progress(round);
    }
    report();
    for (const unsigned side : {kPrepSide, kSmallSide}) FORELOAD_TRY(compare_fast(side));
    return std::move(report_);
  }

 private:
  static std::uint32_t widest(const PrepPictures& pictures) {
    std::uint32_t width = 1;
    for (const Dimensions& size : pictures.sizes) width = std::max(width, size.width);
    return width;
  }

  void start_peer() {
    auto peer = PythonPeer::start(options_.python, pictures_.raw);
    const std::string why = peer ? fmt::format("{} has no such package", options_.python) : peer.error().message;
    if (peer) peer_.emplace(std::move(*peer));
    if (!peer_ || peer_->pillow().empty()) report_.skipped.push_back("Pillow: " + why);
    if (!peer_ || peer_->torchvision().empty()) report_.skipped.push_back("torchvision: " + why);
  }

  Result<std::vector<std::vector<std::byte>>> limit_jpegs(const std::vector<Box>& crops) const {
    std::vector<std::vector<std::byte>> jpegs;
    for (std::size_t i = 0; i < crops.size(); ++i) {
      FORELOAD_ASSIGN(auto jpeg, crop_jpeg(pictures_.raw[i], crops[i]));
      jpegs.push_back(std::move(jpeg));
    }
    return jpegs;
  }

  Result<Round> measure(unsigned round) {
    if (options_.stop && options_.stop()) return Error{Code::kCancelled, "stopped by a signal"};
    const std::vector<Box> crops = crops_of_round(pictures_, round);
    FORELOAD_ASSIGN(const double touched, pictures_.bytes_touched(crops));
    touched_ += touched;
    FORELOAD_ASSIGN(const auto limit, limit_jpegs(crops));
    Round seconds;
    FORELOAD_ASSIGN(seconds["decode"], timed([&] { return decode_.run(pictures_.raw, crops); }));
    FORELOAD_ASSIGN(seconds["raw"], timed([&] { return exact_.run_raw(pictures_, round); }));
    FORELOAD_ASSIGN(seconds["fast raw"], timed([&] { return fast_.run_raw(pictures_, round); }));
    FORELOAD_ASSIGN(seconds["converted"], timed([&] { return exact_.run_converted(pictures_, round); }));
    FORELOAD_ASSIGN(seconds["fast converted"], timed([&] { return fast_.run_converted(pictures_, round); }));
    FORELOAD_ASSIGN(seconds["limit"], timed([&] { return decode_.run(limit, {}); }));
    FORELOAD_TRY(measure_rewrite(round, seconds));
    FORELOAD_TRY(measure_pixels(crops, seconds));
    FORELOAD_TRY(measure_peer(crops, seconds));
    return seconds;
  }

  Status measure_rewrite(unsigned round, Round& seconds) {
    FORELOAD_ASSIGN(const RewriteWork::Seconds spent, rewrite_.run(pictures_, round));
    if (spent.copy == 0) return {};
    seconds["rewrite"] = spent.rewrite;
    seconds["copy"] = spent.copy;
    return {};
  }

  Status measure_pixels(const std::vector<Box>& crops, Round& seconds) {
    const auto several = [&](auto work) -> Result<double> {
      FORELOAD_ASSIGN(const double all, timed([&]() -> Status {
                        for (unsigned i = 0; i < kResizes; ++i) FORELOAD_TRY(work());
                        return {};
                      }));
      return all / kResizes;
    };
    FORELOAD_ASSIGN(seconds["finish"], several([&] { return pixels_.finish(crops); }));
    FORELOAD_ASSIGN(seconds["resize"], several([&] { return pixels_.resize(crops, Kernels::kBest); }));
    FORELOAD_ASSIGN(seconds["twin"], timed([&] { return pixels_.resize(crops, Kernels::kPlain); }));
    return {};
  }

  Status measure_peer(const std::vector<Box>& crops, Round& seconds) {
    if (!peer_) return {};
    if (!peer_->pillow().empty()) {
      FORELOAD_ASSIGN(seconds["pillow"], peer_->resize(crops, kPrepSide));
    }
    if (!peer_->torchvision().empty()) {
      FORELOAD_ASSIGN(seconds["torchvision"], peer_->prepare(crops, kPrepSide));
    }
    return {};
  }

  // How much longer `slow` took than `fast`, in the median; nothing when one of them was not measured.
  std::optional<double> ratio(const char* slow, const char* fast) const {
    std::vector<double> ratios;
    for (const Round& round : rounds_) {
      if (round.count(slow) == 0 || round.count(fast) == 0) return std::nullopt;
      ratios.push_back(round.at(slow) / round.at(fast));
    }
    return median(std::move(ratios));
  }

  void add(const char* name, std::optional<double> value, double goal, bool at_least, const std::string& how) {
    if (value) report_.figures.push_back({std::string("prep/") + name, *value, "ratio", goal, at_least, how});
  }

  std::string rate(const char* what) const {
    std::vector<double> rates;
    for (const Round& round : rounds_) {
      if (round.count(what)) rates.push_back(static_cast<double>(pictures_.raw.size()) / round.at(what));
    }
    return rates.empty() ? "" : fmt::format("{} {:.0f}", what, median(std::move(rates)));
  }

  void report() {
    const std::string of = fmt::format("median of {} rounds of {} {}, one core", options_.rounds, pictures_.raw.size(),
                                       options_.photos.empty() ? "synthetic JPEGs" : "photographs");
    const std::string chain = "RandomResizedCrop(224) + flip + normalise to f32, " + of;
    const std::string versions = peer_ ? fmt::format("{} on Pillow {}", peer_->torchvision(), peer_->pillow()) : "";
    add("raw_against_region_decode", ratio("decode", "raw"), 0.82, true,
        chain + "; against libjpeg-turbo decoding the same boxes and nothing else");
    add("resize_flip_normalise_share", ratio("finish", "decode"), 0.2, false,
        "time against region decode of the same boxes, " + of);
    add("resize_against_scalar", ratio("twin", "resize"), 5, true,
        fmt::format("{} kernels, the crops' sizes to 224 x 224, {}", pixel_kernels().name, of));
    add("resize_against_pillow", ratio("pillow", "resize"), 2, true,
        fmt::format("Pillow {}, the same sizes, {}", peer_ ? peer_->pillow() : "", of));
    add("raw_against_torchvision", ratio("torchvision", "raw"), 2.8, true,
        fmt::format("{}; against torchvision {}, one thread", chain, versions));
    add("converted_against_raw", ratio("raw", "converted"), 1.22, true, chain);
    add("converted_against_limit", ratio("limit", "converted"), 0.72, true,
        chain + "; against libjpeg-turbo decoding JPEGs of the crops' MCUs and nothing else");
    add("converted_against_torchvision", ratio("torchvision", "converted"), 3.5, true,
        fmt::format("{}; against torchvision {}, one thread", chain, versions));
    add("converted_size", pictures_.mean_converted_size(), 1.02, false, "file size against the original, mean");
    add("converted_bytes_touched", touched_ / (options_.rounds + 1), 0.54, false,
        "bytes of a converted file that are decoded for a RandomResizedCrop, mean");
    add("rewrite_against_bare_copy", ratio("copy", "rewrite"), 0.65, true,
        "rewriting with proof, against libjpeg copying the coefficients with the same restart markers, " + of);
    add("fast_against_exact_raw", ratio("raw", "fast raw"), 0.97, true, chain + "; decode mode fast against exact");
    add("fast_against_exact_converted", ratio("converted", "fast converted"), 0.97, true,
        chain + "; decode mode fast against exact");
    for (const char* what : {"decode", "raw", "fast raw", "converted", "fast converted", "limit", "finish", "resize",
                             "twin", "pillow", "torchvision"}) {
      if (auto text = rate(what); !text.empty()) report_.rates.push_back(std::move(text));
    }
  }

  // The goals are the bounds that docs/design/prep.md states.
  Status compare_fast(unsigned side) {
    FORELOAD_ASSIGN(const FastDecode fast,
                    measure_fast_decode(pictures_, {.side = side, .crops = kComparedCrops, .stop = options_.stop}));
    if (side == kPrepSide) report_.advice = advice(fast);
    if (fast.scaled.mean_square == 0) {
      report_.skipped.push_back(fmt::format("fast against exact at {0} x {0}: no crop is decoded smaller", side));
      return {};
    }
    const std::string of = fmt::format("decode mode fast against exact, RandomResizedCrop({}) to u8", side);
    const std::string some =
        fmt::format("{}, the {} of {} crops ({:.0f} %) that are decoded smaller; worst {:.1f} dB", of,
                    fast.scaled.crops, fast.all.crops, 100 * fast.scaled_share(), fast.worst_psnr);
    const std::string all = fmt::format("{}, all {} crops; {:.2f} times as fast as exact", of, fast.all.crops,
                                        fast.exact_seconds / fast.fast_seconds);
    add_difference(fmt::format("{}_all", side), fast.all, all);
    add_difference(fmt::format("{}_scaled", side), fast.scaled, some);
    return {};
  }

  void add_difference(const std::string& which, const PixelDifference& difference, const std::string& how) {
    report_.figures.push_back(
        {"prep/fast_levels_" + which, difference.mean_levels, "levels", kMostLevels, false, "mean absolute, " + how});
    report_.figures.push_back({"prep/fast_psnr_" + which, difference.psnr(), "dB", kLeastPsnr, true, how});
  }

  std::string advice(const FastDecode& fast) const {
    if (fast.scaled.crops == 0) {
      return "decode mode fast would gain nothing on these pictures: no crop is twice as large as its target";
    }
    return fmt::format(
        "decode mode fast would make prep {:.2f} times as fast on these files, {:.2f} times once they are "
        "converted: {:.0f} % of the crops are decoded smaller, and differ by {:.1f} levels on average",
        *ratio("raw", "fast raw"), *ratio("converted", "fast converted"), 100 * fast.scaled_share(),
        fast.scaled.mean_levels);
  }

  const PrepRatesOptions& options_;
  PrepPictures pictures_;
  ChainWork exact_;
  ChainWork fast_;
  DecodeWork decode_;
  RewriteWork rewrite_;
  PixelWork pixels_;
  std::optional<PythonPeer> peer_;
  std::vector<Round> rounds_;
  double touched_ = 0;
  PrepReport report_;
};

}  // namespace

Result<PrepReport> measure_prep(const PrepRatesOptions& options) {
  FORELOAD_ASSIGN(PrepPictures pictures, PrepPictures::load(options.photos, options.images));
  FORELOAD_ASSIGN(ChainWork exact, ChainWork::make(Decode::kExact));
  FORELOAD_ASSIGN(ChainWork fast, ChainWork::make(Decode::kFast));
  PrepMeasurement measurement(options, std::move(pictures), std::move(exact), std::move(fast));
  return measurement.run();
}

}  // namespace foreload
