// Every round draws new crops, and everything is measured with the same ones, one pass after the other:
//
//   decode   the boxes of the raw files, rows thrown away          resize   pixels in memory → 224 × 224 pixels: ours,
//   raw      the chain on the raw files                                     the plain twin's, Pillow's
//   converted  the chain on the converted files                    finish   resize + flip + normalise to the tensor
//   limit    JPEGs that hold the crops' MCUs and nothing else      torchvision   on PIL, one thread
//
// A figure is the median over the rounds of a ratio inside a round, so what disturbs a round disturbs both sides.
#include "probe/prep_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>

#include "base/random.h"
#include "prep/image.h"
#include "prep/jpeg.h"
#include "prep/output.h"
#include "prep/resize.h"
#include "prep/resize_kernels.h"
#include "probe/jpeg_crop.h"
#include "probe/loader_rates.h"
#include "probe/prep_pictures.h"
#include "probe/python_peer.h"

namespace foreload {

namespace {

constexpr unsigned kSide = 224;
// Tensors that are filled before the first is used again, as those of a batch would be.
constexpr std::size_t kBatch = 64;
constexpr unsigned kResizes = 4;  // passes of what is too quick to be measured once

// Of this thread: what others run on the machine does not count.
double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <typename Work>
Result<double> timed(Work work) {
  const double start = thread_seconds();
  FORELOAD_TRY(work());
  return thread_seconds() - start;
}

class NoSink final : public RowSink {
 public:
  void push(const std::uint8_t*) override {}
};

// The tensors of a batch, one after the other and aligned as in a ring.
class Tensors {
 public:
  explicit Tensors(Bytes bytes) : bytes_(bytes) {}

  Result<std::span<std::byte>> next() {
    if (count_++ % kBatch == 0) FORELOAD_TRY(memory_.reset(Scratch::padded(bytes_) * kBatch));
    return memory_.take<std::byte>(bytes_);
  }

 private:
  Bytes bytes_;
  Scratch memory_;
  std::size_t count_ = 0;
};

enum class Kernels { kBest, kPlain };

// Works on pixels in memory, which are noise: what they show costs nothing.
class PixelWork {
 public:
  explicit PixelWork(std::uint32_t widest)
      : row_bytes_(row_bytes(widest)),
        rows_(row_bytes_ * kRows),
        tensors_(std::size_t{kSide} * kSide * 3 * sizeof(float)),
        tables_(OutputTables::make(DType::kF32, Layout::kNchw, kImageNet)) {
    KeyedRandom random(1, 0, 0, 0);
    for (auto& byte : rows_) byte = static_cast<std::uint8_t>(random.next_u32());
  }

  Status resize(const std::vector<Box>& crops, Kernels kernels) {
    NoSink nowhere;
    for (const Box& crop : crops) FORELOAD_TRY(run(crop, false, kernels, nowhere));
    return {};
  }

  Status finish(const std::vector<Box>& crops) {
    for (std::size_t i = 0; i < crops.size(); ++i) {
      FORELOAD_TRY(run(crops[i], i % 2 == 1, Kernels::kBest, writer_));
    }
    return {};
  }

 private:
  static constexpr std::size_t kRows = 8;

  Status run(const Box& crop, bool mirrored, Kernels kernels, RowSink& to) {
    geometry_.begin({crop.width, crop.height});
    FORELOAD_TRY(geometry_.resize({kSide, kSide}));
    if (mirrored) geometry_.mirror();
    geometry_.settle();
    if (&to == &writer_) {
      FORELOAD_ASSIGN(const auto tensor, tensors_.next());
      writer_.prepare(tables_, geometry_.last_view(), tensor);
    }
    if (geometry_.steps().empty()) return push_rows(crop.height, to);
    const ResizeStep& step = geometry_.steps()[0];
    FORELOAD_TRY(scratch_.reset(ResizeStage::bytes(step)));
    if (kernels == Kernels::kBest) stage_.prepare(step, scratch_, to);
    if (kernels == Kernels::kPlain) stage_.prepare_plain(step, scratch_, to);
    return push_rows(crop.height, stage_);
  }

  Status push_rows(std::uint32_t count, RowSink& to) {
    for (std::uint32_t y = 0; y < count; ++y) to.push(rows_.data() + y % kRows * row_bytes_);
    return {};
  }

  std::size_t row_bytes_;
  std::vector<std::uint8_t> rows_;
  Tensors tensors_;
  OutputTables tables_;
  Geometry geometry_;
  Scratch scratch_;
  ResizeStage stage_;
  TensorWriter writer_;
};

// Works on JPEGs in memory.
class JpegWork {
 public:
  static Result<JpegWork> make() {
    FORELOAD_ASSIGN(Chain chain,
                    Chain::compile({.transforms = {random_resized_crop(kSide), random_flip(), normalize(kImageNet)}}));
    return JpegWork(std::make_unique<Chain>(std::move(chain)));
  }

  // An empty box stands for the whole picture.
  Status decode(const std::vector<std::byte>& jpeg, Box box) {
    FORELOAD_ASSIGN(const Dimensions size, decoder_->open(jpeg, Limits{}));
    if (box.width == 0) box = {0, 0, size.width, size.height};
    const std::size_t need = decoder_->memory(box).scratch;
    if (scratch_.size() < need) scratch_.resize(need);
    FORELOAD_TRY(decoder_->start(box, scratch_));
    for (std::uint32_t row = 0; row < box.height; ++row) FORELOAD_TRY(decoder_->next_row());
    decoder_->close();
    return {};
  }

  Status decode_all(const std::vector<std::vector<std::byte>>& jpegs, const std::vector<Box>& boxes) {
    for (std::size_t i = 0; i < jpegs.size(); ++i) FORELOAD_TRY(decode(jpegs[i], boxes.empty() ? Box{} : boxes[i]));
    return {};
  }

  Status run_chain(const std::vector<std::vector<std::byte>>& jpegs, unsigned round) {
    for (std::size_t i = 0; i < jpegs.size(); ++i) {
      FORELOAD_TRY(runner_.begin(jpegs[i], prep_key(round, i)));
      FORELOAD_ASSIGN(const auto tensor, tensors_.next());
      FORELOAD_TRY(runner_.finish(tensor));
    }
    return {};
  }

 private:
  explicit JpegWork(std::unique_ptr<Chain> chain)
      : chain_(std::move(chain)), runner_(*chain_), decoder_(make_jpeg_decoder()), tensors_(chain_->output().bytes()) {}

  std::unique_ptr<Chain> chain_;
  ChainRunner runner_;
  std::unique_ptr<ImageDecoder> decoder_;
  std::vector<std::uint8_t> scratch_;
  Tensors tensors_;
};

// CPU seconds of a round, by the names above; what was not measured is not there.
using Round = std::map<std::string, double>;

class PrepMeasurement {
 public:
  PrepMeasurement(const PrepRatesOptions& options, PrepPictures pictures, JpegWork jpegs)
      : options_(options), pictures_(std::move(pictures)), jpegs_(std::move(jpegs)), pixels_(widest(pictures_)) {}

  Result<PrepReport> run() {
    start_peer();
    for (unsigned round = 0; round <= options_.rounds; ++round) {
      FORELOAD_ASSIGN(Round seconds, measure(round));
      if (round > 0) rounds_.push_back(std::move(seconds));  // the first one warms everything up
      if (options_.progress) options_.progress(round);
    }
    FORELOAD_TRY(report());
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
    FORELOAD_ASSIGN(seconds["decode"], timed([&] { return jpegs_.decode_all(pictures_.raw, crops); }));
    FORELOAD_ASSIGN(seconds["raw"], timed([&] { return jpegs_.run_chain(pictures_.raw, round); }));
    FORELOAD_ASSIGN(seconds["converted"], timed([&] { return jpegs_.run_chain(pictures_.converted, round); }));
    FORELOAD_ASSIGN(seconds["limit"], timed([&] { return jpegs_.decode_all(limit, {}); }));
    FORELOAD_TRY(measure_pixels(crops, seconds));
    FORELOAD_TRY(measure_peer(crops, seconds));
    return seconds;
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
      FORELOAD_ASSIGN(seconds["pillow"], peer_->resize(crops, kSide));
    }
    if (!peer_->torchvision().empty()) {
      FORELOAD_ASSIGN(seconds["torchvision"], peer_->prepare(crops, kSide));
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

  Status report() {
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
    for (const char* what :
         {"decode", "raw", "converted", "limit", "finish", "resize", "twin", "pillow", "torchvision"}) {
      if (auto text = rate(what); !text.empty()) report_.rates.push_back(std::move(text));
    }
    return {};
  }

  const PrepRatesOptions& options_;
  PrepPictures pictures_;
  JpegWork jpegs_;
  PixelWork pixels_;
  std::optional<PythonPeer> peer_;
  std::vector<Round> rounds_;
  double touched_ = 0;
  PrepReport report_;
};

}  // namespace

Result<PrepReport> measure_prep(const PrepRatesOptions& options) {
  FORELOAD_ASSIGN(PrepPictures pictures, PrepPictures::load(options.photos, options.images));
  FORELOAD_ASSIGN(JpegWork jpegs, JpegWork::make());
  PrepMeasurement measurement(options, std::move(pictures), std::move(jpegs));
  return measurement.run();
}

}  // namespace foreload
