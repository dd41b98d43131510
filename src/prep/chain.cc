// One sample's way through a chain of image ops:
//
//   begin   header → ops describe the geometry, with this sample's random numbers → windows, memory
//   finish  decoder ─row─► [view] ─► resize ─► … ─► tensor writer        one row at a time
//
// A view stage is only needed where a cut has black borders or is mirrored before a resize.
#include "prep/chain.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "prep/image.h"
#include "prep/npy.h"
#include "prep/op.h"
#include "prep/output.h"
#include "prep/resize.h"
#include "prep/rows.h"
#include "prep/scratch.h"

namespace foreload {

namespace {

Status check_array(const ChainOptions& options) {
  if (options.transforms.size() == 1) return {};
  return Error{Code::kInvalid, fmt::format("chain '{}': array can not be combined with other transforms",
                                           chain_text(options.transforms))};
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
  if (options.dtype == DType::kU8 && declared.normalize) {
    return Error{Code::kInvalid, "normalize gives fractions, which u8 can not hold; use f32 or f16, or leave it out"};
  }
  return {};
}

TensorSpec image_spec(const ChainOptions& options, Dimensions size) {
  if (options.layout == Layout::kNchw) return {options.dtype, {3, size.height, size.width}};
  return {options.dtype, {size.height, size.width, 3}};
}

}  // namespace

struct Chain::Program {
  std::vector<std::unique_ptr<Op>> ops;
  Limits limits;
  TensorSpec output;
  std::optional<ArraySpec> array;
  OutputTables tables;
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
  program->limits = options.limits;
  Declaration declared;
  for (const auto& transform : options.transforms) {
    FORELOAD_ASSIGN(auto op, make_op(transform));
    FORELOAD_TRY(op->declare(declared));
    program->ops.push_back(std::move(op));
  }
  if (declared.array) {
    FORELOAD_TRY(check_array(options));
    program->output = declared.array->tensor;
    program->array = std::move(declared.array);
  } else {
    FORELOAD_TRY(check_image(options, declared));
    program->output = image_spec(options, *declared.size);
    program->tables = OutputTables::make(options.dtype, options.layout, declared.normalize);
  }
  return Chain(std::move(program));
}

const TensorSpec& Chain::output() const {
  return program_->output;
}

struct ChainRunner::State {
  explicit State(const Chain::Program& chain_program)
      : program(chain_program),
        decoders(image_formats().size()),
        resizes(program.ops.size()),
        views(program.ops.size()) {}

  Result<Bytes> begin_array(std::span<const std::byte> sample);
  Result<Bytes> begin_image(std::span<const std::byte> sample, const PrepKey& key);
  ImageDecoder& decoder_of(const ImageFormat& format);
  Bytes stage_bytes() const;
  RowSink& build(std::span<std::byte> out);
  Status decode(std::span<std::byte> out);

  const Chain::Program& program;
  std::vector<std::unique_ptr<ImageDecoder>> decoders;  // one per format, made when first needed
  std::vector<ResizeStage> resizes;
  std::vector<ViewStage> views;
  TensorWriter writer;
  Geometry geometry;
  Scratch scratch;
  ImageDecoder* decoder = nullptr;  // of the sample between begin() and finish()
  DecodeMemory decoder_memory;
  std::span<const std::byte> array_data;
  Dimensions dimensions;
  bool begun = false;
  bool damaged = false;
};

Bytes Chain::runner_bytes() const {
  constexpr Bytes kDecoders = 32_KiB;  // measured: what libjpeg keeps between pictures, rounded up
  const Bytes stages = program_->ops.size() * (sizeof(ResizeStage) + sizeof(ViewStage) + sizeof(ResizeStep));
  return sizeof(ChainRunner::State) + stages + (program_->array ? 0 : kDecoders);
}

ChainRunner::ChainRunner(const Chain& chain) : state_(std::make_unique<State>(*chain.program_)) {}
ChainRunner::ChainRunner(ChainRunner&&) noexcept = default;
ChainRunner::~ChainRunner() = default;

Result<Bytes> ChainRunner::begin(std::span<const std::byte> sample, const PrepKey& key) {
  State& state = *state_;
  state.begun = false;
  state.damaged = false;
  state.dimensions = {};
  if (sample.size() > state.program.limits.sample_bytes) {
    return Error{Code::kBadSample, fmt::format("{} bytes, more than the limit of {}", format_count(sample.size()),
                                               format_count(state.program.limits.sample_bytes))};
  }
  auto bytes = state.program.array ? state.begin_array(sample) : state.begin_image(sample, key);
  state.begun = bytes.ok();
  return bytes;
}

Status ChainRunner::finish(std::span<std::byte> out) {
  State& state = *state_;
  FORELOAD_CHECK(state.begun, "finish() follows a begin() that succeeded");
  FORELOAD_CHECK(out.size() == state.program.output.bytes(), "out has output().bytes()");
  state.begun = false;
  if (state.program.array) {
    if (!out.empty()) std::memcpy(out.data(), state.array_data.data(), out.size());
    return {};
  }
  Status status = state.decode(out);
  state.damaged = state.decoder->damaged();
  state.decoder->close();
  return status;
}

Bytes ChainRunner::scratch_bytes() const {
  return state_->scratch.capacity();
}

void ChainRunner::trim(Bytes keep) {
  state_->scratch.trim(keep);
}

Dimensions ChainRunner::dimensions() const {
  return state_->dimensions;
}

bool ChainRunner::damaged() const {
  return state_->damaged;
}

Result<Bytes> ChainRunner::State::begin_array(std::span<const std::byte> sample) {
  const ArraySpec& spec = *program.array;
  FORELOAD_ASSIGN(array_data, spec.headerless ? headerless_data(sample, spec.tensor) : npy_data(sample, spec.tensor));
  return Bytes{0};
}

Result<Bytes> ChainRunner::State::begin_image(std::span<const std::byte> sample, const PrepKey& key) {
  FORELOAD_ASSIGN(const ImageFormat* format, image_format_of(sample));
  decoder = &decoder_of(*format);
  FORELOAD_ASSIGN(dimensions, decoder->open(sample, program.limits));
  geometry.begin(dimensions);
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    KeyedRandom random(key.seed, key.epoch, key.position, i);
    FORELOAD_TRY(program.ops[i]->place(geometry, random));
  }
  geometry.settle();
  const Box box = geometry.source_box();
  decoder_memory = box.height > 0 ? decoder->memory(box) : DecodeMemory{};
  return Scratch::padded(decoder_memory.scratch) + stage_bytes() + decoder_memory.library;
}

ImageDecoder& ChainRunner::State::decoder_of(const ImageFormat& format) {
  auto& made = decoders[static_cast<std::size_t>(&format - image_formats().data())];
  if (!made) made = format.make();
  return *made;
}

Bytes ChainRunner::State::stage_bytes() const {
  Bytes bytes = 0;
  for (const ResizeStep& step : geometry.steps()) {
    bytes += ResizeStage::bytes(step);
    if (!ViewStage::is_plain(step.view, step.in_x, step.in_y)) bytes += ViewStage::bytes(step.in_x);
  }
  return bytes;
}

// Connects the stages, the last one first: a view that begins with black rows pushes them at once.
RowSink& ChainRunner::State::build(std::span<std::byte> out) {
  writer.prepare(program.tables, geometry.last_view(), out);
  RowSink* next = &writer;
  const auto steps = geometry.steps();
  for (std::size_t i = steps.size(); i-- > 0;) {
    const ResizeStep& step = steps[i];
    resizes[i].prepare(step, scratch, *next);
    next = &resizes[i];
    if (ViewStage::is_plain(step.view, step.in_x, step.in_y)) continue;
    views[i].prepare(step.view, step.in_x, step.in_y, scratch, *next);
    views[i].start();
    next = &views[i];
  }
  return *next;
}

Status ChainRunner::State::decode(std::span<std::byte> out) {
  const Box box = geometry.source_box();
  FORELOAD_TRY(scratch.reset(Scratch::padded(decoder_memory.scratch) + stage_bytes()));
  const auto decoder_scratch = scratch.take<std::uint8_t>(decoder_memory.scratch);
  RowSink& first = build(out);
  if (box.height == 0) return {};
  FORELOAD_TRY(decoder->start(box, decoder_scratch));
  for (std::uint32_t row = 0; row < box.height; ++row) {
    FORELOAD_ASSIGN(const std::uint8_t* pixels, decoder->next_row());
    first.push(pixels);
  }
  return {};
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

}  // namespace foreload
