#include "probe/prep_work.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/random.h"
#include "prep/jpeg.h"

namespace foreload {

namespace {

// Tensors that are filled before the first is used again, as those of a batch would be; fewer when they are large.
constexpr std::size_t kBatch = 64;
constexpr std::size_t kBatchBytes = 64_MiB;
constexpr std::size_t kNoiseRows = 8;
constexpr std::size_t kRewritesOfRound = 24;

class NoSink final : public RowSink {
 public:
  void push(const std::uint8_t*) override {}
};

}  // namespace

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Result<std::span<std::byte>> Tensors::next() {
  const std::size_t each = Scratch::padded(bytes_);
  const std::size_t batch = std::clamp<std::size_t>(kBatchBytes / std::max<std::size_t>(each, 1), 1, kBatch);
  if (count_++ % batch == 0) FORELOAD_TRY(memory_.reset(each * batch));
  return memory_.take<std::byte>(bytes_);
}

PixelWork::PixelWork(std::uint32_t widest)
    : row_bytes_(row_bytes(widest)),
      rows_(row_bytes_ * kNoiseRows),
      tensors_(std::size_t{kPrepSide} * kPrepSide * 3 * sizeof(float)),
      tables_(OutputTables::make(DType::kF32, Layout::kNchw, kImageNet)) {
  KeyedRandom random(1, 0, 0, 0);
  for (auto& byte : rows_) byte = static_cast<std::uint8_t>(random.next_u32());
}

Status PixelWork::resize(const std::vector<Box>& crops, Kernels kernels) {
  NoSink nowhere;
  for (const Box& crop : crops) FORELOAD_TRY(run(crop, false, kernels, nowhere));
  return {};
}

Status PixelWork::finish(const std::vector<Box>& crops) {
  for (std::size_t i = 0; i < crops.size(); ++i) {
    FORELOAD_TRY(run(crops[i], i % 2 == 1, Kernels::kBest, writer_));
  }
  return {};
}

Status PixelWork::run(const Box& crop, bool mirrored, Kernels kernels, RowSink& to) {
  geometry_.begin({crop.width, crop.height});
  FORELOAD_TRY(geometry_.resize({kPrepSide, kPrepSide}));
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

Status PixelWork::push_rows(std::uint32_t count, RowSink& to) {
  for (std::uint32_t y = 0; y < count; ++y) to.push(rows_.data() + y % kNoiseRows * row_bytes_);
  return {};
}

DecodeWork::DecodeWork() : decoder_(make_plain_jpeg_decoder()) {}

// An empty box stands for the whole picture.
Status DecodeWork::decode(const std::vector<std::byte>& jpeg, Box box) {
  FORELOAD_ASSIGN(const Dimensions size, decoder_->open(jpeg, Limits{}));
  if (box.width == 0) box = {0, 0, size.width, size.height};
  const std::size_t need = decoder_->memory(box).scratch;
  if (scratch_.size() < need) scratch_.resize(need);
  FORELOAD_TRY(decoder_->start(box, scratch_));
  for (std::uint32_t row = 0; row < box.height; ++row) FORELOAD_TRY(decoder_->next_row());
  decoder_->close();
  return {};
}

Status DecodeWork::run(const std::vector<std::vector<std::byte>>& jpegs, const std::vector<Box>& boxes) {
  for (std::size_t i = 0; i < jpegs.size(); ++i) FORELOAD_TRY(decode(jpegs[i], boxes.empty() ? Box{} : boxes[i]));
  return {};
}

Result<ChainWork> ChainWork::make(Decode decode) {
  ChainOptions options;
  options.transforms = {random_resized_crop(kPrepSide), random_flip(), normalize(kImageNet)};
  options.decode = decode;
  FORELOAD_ASSIGN(Chain chain, Chain::compile(options));
  return ChainWork(std::make_unique<Chain>(std::move(chain)));
}

ChainWork::ChainWork(std::unique_ptr<Chain> chain)
    : chain_(std::move(chain)), runner_(*chain_), tensors_(chain_->output().bytes()) {}

Status ChainWork::run(std::span<const std::byte> jpeg, const PrepKey& key, std::span<const std::uint32_t> rows) {
  FORELOAD_TRY(runner_.begin(jpeg, key, {.offsets = rows}));
  FORELOAD_ASSIGN(const auto tensor, tensors_.next());
  return runner_.finish(tensor);
}

Status ChainWork::run_raw(const PrepPictures& pictures, unsigned round) {
  for (std::size_t i = 0; i < pictures.raw.size(); ++i) {
    FORELOAD_TRY(run(pictures.raw[i], prep_key(round, i), {}));
  }
  return {};
}

Status ChainWork::run_converted(const PrepPictures& pictures, unsigned round) {
  for (std::size_t i = 0; i < pictures.converted.size(); ++i) {
    FORELOAD_TRY(run(pictures.converted[i], prep_key(round, i), pictures.rows[i]));
  }
  return {};
}

Result<RewriteWork::Seconds> RewriteWork::run(const PrepPictures& pictures, unsigned round) {
  const std::size_t step = std::max<std::size_t>(pictures.raw.size() / kRewritesOfRound, 1);
  Seconds sum;
  for (std::size_t i = round % step; i < pictures.raw.size(); i += step) {
    if (pictures.intervals[i] == 0) continue;
    const std::vector<std::byte>& jpeg = pictures.raw[i];
    FORELOAD_ASSIGN(const double copy, timed([&] { return copier_.copy(jpeg, pictures.intervals[i]); }));
    FORELOAD_ASSIGN(const double rewrite, timed([&] { return rewriter_.rewrite(jpeg, Limits{}); }));
    sum.copy += copy;
    sum.rewrite += rewrite;
  }
  return sum;
}

}  // namespace foreload
