// Compiling a chain, and the runner's outer side: arrays are copied here, images go through chain_image.cc.
#include "prep/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "prep/array_runner.h"
#include "prep/chain_image.h"
#include "prep/npy.h"
#include "prep/op.h"

namespace foreload {

namespace {

Status check_array(const ChainOptions& options, const ArraySpec& spec) {
  if (options.transforms.size() == (spec.window.empty() ? 1 : 2)) return {};
  return Error{Code::kInvalid,
               fmt::format("chain '{}': an array can not be combined with other transforms than a window",
                           chain_text(options.transforms))};
}

Status check_erasing(DType dtype, const std::array<double, 3>& value) {
  if (dtype != DType::kU8) return {};
  for (const double level : value) {
    if (level >= 0 && level <= 255 && level == std::floor(level)) continue;
    return Error{Code::kInvalid,
                 fmt::format("random_erasing: a value of {} can not stand in u8; use whole numbers from "
                             "0 to 255, or f32",
                             level)};
  }
  return {};
}

Status check_image(const ChainOptions& options, const Declaration& declared) {
  if (!declared.size) {
    return Error{Code::kInvalid, fmt::format("chain '{}': the size of its result depends on the image; add a transform "
                                             "that fixes it, such as center_crop(224)",
                                             chain_text(options.transforms))};
  }
  if (options.dtype != DType::kU8 && options.dtype != DType::kF16 && options.dtype != DType::kF32) {
    return Error{Code::kInvalid, fmt::format("images can be u8, f16 or f32, not {}", dtype_name(options.dtype))};
  }
  for (const auto& value : declared.erased_with) FORELOAD_TRY(check_erasing(options.dtype, value));
  if (options.dtype == DType::kU8 && declared.normalize) {
    return Error{Code::kInvalid, "normalize gives fractions, which u8 can not hold; use f32 or f16, or leave it out"};
  }
  return {};
}

// The batch is mixed after everything else is done.
Status check_unmixed(const Declaration& declared, const Transform& next) {
  if (!declared.mix) return {};
  return Error{Code::kInvalid,
               fmt::format("transform {} stands after mixup or cutmix; put one of these last", next.name)};
}

TensorSpec image_spec(const ChainOptions& options, Dimensions size) {
  if (options.layout == Layout::kNchw) return {options.dtype, {3, size.height, size.width}};
  return {options.dtype, {size.height, size.width, 3}};
}

}  // namespace

struct Chain::Program {
  TensorSpec output;
  std::optional<ArraySpec> array;
  std::optional<MixSpec> mix;
  ImageProgram image;
};

Chain::Chain(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Chain::Chain(Chain&&) noexcept = default;
Chain& Chain::operator=(Chain&&) noexcept = default;
Chain::~Chain() = default;

Result<Chain> Chain::compile(const ChainOptions& options) {
  if (options.transforms.empty()) return Error{Code::kInvalid, "the chain is empty: name at least one transform"};
  if (options.transforms.size() > kMostTransforms) {
    return Error{Code::kInvalid, fmt::format("the chain has {} transforms; at most {} are possible",
                                             options.transforms.size(), kMostTransforms)};
  }
  auto program = std::make_unique<Program>();
  ImageProgram& image = program->image;
  image.limits = options.limits;
  image.decode = options.decode;
  image.dtype = options.dtype;
  image.layout = options.layout;
  Declaration declared;
  for (const auto& transform : options.transforms) {
    FORELOAD_ASSIGN(auto op, make_op(transform));
    FORELOAD_TRY(check_unmixed(declared, transform));
    FORELOAD_TRY(op->declare(declared));
    if (declared.mix) declared.mix->op = static_cast<std::uint32_t>(image.ops.size());
    if (!declared.normalize) ++image.normalize_op;
    image.ops.push_back(std::move(op));
  }
  if (declared.array) {
    FORELOAD_TRY(check_array(options, *declared.array));
    program->output = array_output(*declared.array);
    program->array = std::move(declared.array);
  } else {
    FORELOAD_TRY(check_image(options, declared));
    program->output = image_spec(options, *declared.size);
    program->mix = declared.mix;
    image.size = *declared.size;
    image.normalize = declared.normalize;
    image.tables = OutputTables::make(options.dtype, options.layout, declared.normalize);
  }
  return Chain(std::move(program));
}

const TensorSpec& Chain::output() const {
  return program_->output;
}

Bytes Chain::ragged_element() const {
  return program_->array && program_->array->ragged ? dtype_size(program_->output.dtype) : 0;
}

bool Chain::mixes() const {
  return program_->mix.has_value();
}

void Chain::finish_batch(const BatchBlock& block) const {
  if (ragged_element() > 0) compact_ragged(block, ragged_element());
  if (program_->mix) mix_pairs(block, *program_->mix, program_->output, program_->image.layout);
}

struct ChainRunner::State {
  explicit State(const Chain::Program& chain_program) : program(chain_program), image(program.image) {}

  Result<Bytes> begin_array(std::span<const std::byte> sample, const PrepKey& key);

  const Chain::Program& program;
  ImageRun image;
  ArrayRunner array;
  bool begun = false;
};

Bytes Chain::runner_bytes() const {
  return sizeof(ChainRunner::State) + (program_->array ? 0 : ImageRun::fixed_bytes(program_->image));
}

ChainRunner::ChainRunner(const Chain& chain) : state_(std::make_unique<State>(*chain.program_)) {}
ChainRunner::ChainRunner(ChainRunner&&) noexcept = default;
ChainRunner::~ChainRunner() = default;

Result<Bytes> ChainRunner::begin(std::span<const std::byte> sample, const PrepKey& key, const RowHint& rows) {
  State& state = *state_;
  const Limits& limits = state.program.image.limits;
  state.begun = false;
  state.image.reset();
  if (sample.size() > limits.sample_bytes) {
    return Error{Code::kBadSample, fmt::format("{} bytes, more than the limit of {}", format_count(sample.size()),
                                               format_count(limits.sample_bytes))};
  }
  auto bytes = state.program.array ? state.begin_array(sample, key) : state.image.begin(sample, key, rows);
  state.begun = bytes.ok();
  return bytes;
}

Status ChainRunner::finish(std::span<std::byte> out) {
  State& state = *state_;
  FORELOAD_CHECK(state.begun, "finish() follows a begin() that succeeded");
  FORELOAD_CHECK(out.size() == state.program.output.bytes(), "out has output().bytes()");
  state.begun = false;
  if (state.program.array) {
    state.array.finish(out);
    return {};
  }
  return state.image.finish(out);
}

Bytes ChainRunner::scratch_bytes() const {
  return state_->image.scratch().capacity();
}

void ChainRunner::trim(Bytes keep) {
  state_->image.scratch().trim(keep);
}

Dimensions ChainRunner::dimensions() const {
  return state_->image.dimensions();
}

std::uint64_t ChainRunner::length() const {
  return state_->array.length();
}

bool ChainRunner::damaged() const {
  return state_->image.damaged();
}

// A window is the op after the array.
Result<Bytes> ChainRunner::State::begin_array(std::span<const std::byte> sample, const PrepKey& key) {
  FORELOAD_TRY(array.begin(*program.array, sample, KeyedRandom(key.seed, key.epoch, key.position, 1)));
  return Bytes{0};
}

std::vector<Transform> default_chain(std::span<const std::byte> first_sample) {
  if (is_npy(first_sample)) {
    const auto header = parse_npy(first_sample);
    if (!header) return {};
    const auto shape = header->shape();
    return {array(header->dtype, {shape.begin(), shape.end()})};
  }
  if (!image_format_of(first_sample)) return {};
  return {random_resized_crop(224), random_flip(), normalize(kImageNet)};
}

Result<Dimensions> image_dimensions(std::span<const std::byte> sample) {
  FORELOAD_ASSIGN(const ImageFormat* format, image_format_of(sample));
  return format->dimensions(sample);
}

namespace {

// A box of the picture that is decoded at eighths/8, in pixels of the whole one.
Box unscaled(const Box& box, std::uint32_t eighths, Dimensions picture) {
  const std::uint32_t step = 8 / eighths;
  const std::uint32_t right = std::min((box.x + box.width) * step, picture.width);
  const std::uint32_t bottom = std::min((box.y + box.height) * step, picture.height);
  return {box.x * step, box.y * step, right - box.x * step, bottom - box.y * step};
}

Box around(const Box& a, const Box& b) {
  const Box first{std::min(a.x, b.x), std::min(a.y, b.y), 0, 0};
  return {first.x, first.y, std::max(a.x + a.width, b.x + b.width) - first.x,
          std::max(a.y + a.height, b.y + b.height) - first.y};
}

}  // namespace

struct CropForesight::State {
  // Zero rows: no pixel is needed.
  Box box(Dimensions picture, const PrepKey& key, Decode decode);

  const Chain::Program& program;
  Plan plan{};
};

Box CropForesight::State::box(Dimensions picture, const PrepKey& key, Decode decode) {
  if (!place_ops(program.image, picture, key, plan)) return {};
  const std::uint32_t eighths = decode == Decode::kFast ? plan.source_geometry().smallest_scale() : 8;
  if (eighths < 8) plan.source_geometry().scale_source(eighths);
  plan.settle();
  return unscaled(plan.stages()[0].geometry.source_box(), eighths, picture);
}

CropForesight::CropForesight(const Chain& chain) : state_(new State{*chain.program_}) {}
CropForesight::~CropForesight() = default;

// Whether a picture can be decoded at a fraction of its size only its bytes say.
std::optional<Box> CropForesight::box(Dimensions picture, const PrepKey& key) {
  if (state_->program.array || picture.width == 0 || picture.height == 0) return std::nullopt;
  const Box box = state_->box(picture, key, Decode::kExact);
  if (box.height == 0) return std::nullopt;
  const bool is_fast = state_->program.image.decode == Decode::kFast;
  return is_fast ? around(box, state_->box(picture, key, Decode::kFast)) : box;
}

}  // namespace foreload
