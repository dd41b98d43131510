#include "probe/prep_stages.h"

#include <algorithm>
#include <utility>

#include "prep/op.h"

namespace foreload {
namespace {

PrepKey key_of(unsigned round, std::size_t sample) {
  return {.seed = 1, .epoch = round, .position = sample};
}

// The same random numbers in every pass of a round.
template <typename Work>
Result<double> timed_pass(std::span<const PrepSample> samples, unsigned round, Work& work) {
  return timed([&]() -> Status {
    for (std::size_t i = 0; i < samples.size(); ++i) FORELOAD_TRY(work.run(samples[i], key_of(round, i)));
    return {};
  });
}

Result<bool> is_image_chain(const ChainOptions& options) {
  Declaration declared;
  for (const Transform& transform : options.transforms) {
    FORELOAD_ASSIGN(const std::unique_ptr<Op> op, make_op(transform));
    FORELOAD_TRY(op->declare(declared));
  }
  return !declared.array.has_value();
}

}  // namespace

Result<DecodeAlone> DecodeAlone::make(const ChainOptions& options) {
  DecodeAlone decode;
  for (const Transform& transform : options.transforms) {
    FORELOAD_ASSIGN(std::unique_ptr<Op> op, make_op(transform));
    decode.program_.ops.push_back(std::move(op));
  }
  decode.program_.limits = options.limits;
  decode.program_.decode = options.decode;
  return decode;
}

// As ImageRun does it, up to the first row.
Status DecodeAlone::run(const PrepSample& sample, const PrepKey& key) {
  FORELOAD_ASSIGN(const ImageFormat* format, image_format_of(sample.bytes));
  auto& decoder = decoders_[static_cast<std::size_t>(format - image_formats().data())];
  if (!decoder) decoder = format->make();
  decoder->hint_rows({.offsets = sample.rows});
  FORELOAD_ASSIGN(const Dimensions size, decoder->open(sample.bytes, program_.limits));
  FORELOAD_TRY(place_ops(program_, size, key, plan_));
  if (program_.decode == Decode::kFast && decoder->can_scale()) {
    const std::uint32_t eighths = plan_.source_geometry().smallest_scale();
    if (eighths < 8) {
      plan_.source_geometry().scale_source(eighths);
      decoder->set_scale(eighths);
    }
  }
  plan_.settle();
  const Box box = plan_.stages()[0].geometry.source_box();
  if (box.height == 0) return {};
  const std::size_t need = decoder->memory(box).scratch;
  if (scratch_.size() < need) scratch_.resize(need);
  FORELOAD_TRY(decoder->start(box, scratch_));
  for (std::uint32_t row = 0; row < box.height; ++row) FORELOAD_TRY(decoder->next_row());
  decoder->close();
  return {};
}

Status PrepStages::Runner::run(const PrepSample& sample, const PrepKey& key) {
  FORELOAD_TRY(runner.begin(sample.bytes, key, {.offsets = sample.rows}));
  FORELOAD_ASSIGN(const auto tensor, tensors.next());
  return runner.finish(tensor);
}

Result<PrepStages> PrepStages::make(const ChainOptions& options) {
  PrepStages stages;
  FORELOAD_ASSIGN(Chain chain, Chain::compile(options));
  stages.whole_ = std::make_unique<Runner>(std::move(chain));
  FORELOAD_ASSIGN(const bool is_image, is_image_chain(options));
  if (!is_image) return stages;
  FORELOAD_ASSIGN(stages.decode_, DecodeAlone::make(options));
  ChainOptions plain = options;
  plain.dtype = DType::kU8;
  std::erase_if(plain.transforms, [](const Transform& transform) { return transform.name == "normalize"; });
  if (auto pixels = Chain::compile(plain)) stages.pixels_ = std::make_unique<Runner>(std::move(*pixels));
  return stages;
}

Result<double> PrepStages::decode(std::span<const PrepSample> samples, unsigned round) {
  return timed_pass(samples, round, *decode_);
}

Result<double> PrepStages::pixels(std::span<const PrepSample> samples, unsigned round) {
  return timed_pass(samples, round, *pixels_);
}

Result<double> PrepStages::whole(std::span<const PrepSample> samples, unsigned round) {
  return timed_pass(samples, round, *whole_);
}

}  // namespace foreload
