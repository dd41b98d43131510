// One sample's way through a chain of image ops:
//
//   begin   header → ops plan geometry and strokes, with this sample's random numbers → windows, memory
//   finish  decoder ─row─► [view] ─► resize ─► … ─► tensor writer        one row at a time
//
// and, when there are strokes, once more for every stage:
//
//           decoder ─row─► … ─► canvas ─► strokes ─row─► … ─► canvas ─► strokes ─row─► … ─► tensor writer
//
// A view stage is only needed where a cut has black borders or is mirrored before a resize.
#include "prep/chain_image.h"

#include <algorithm>

#include "prep/chain.h"
#include "prep/erase.h"
#include "prep/resize_kernels.h"

namespace foreload {

namespace {

constexpr std::size_t kMostStrokes = 16;  // of one op

Interval whole(const AxisView& view) {
  return {0, view.size};
}

}  // namespace

ImageRun::ImageRun(const ImageProgram& program)
    : program_(program),
      decoders_(image_formats().size()),
      resizes_(program.ops.size()),
      views_(program.ops.size()),
      reverses_(program.ops.size() + 1) {}

Bytes ImageRun::fixed_bytes(const ImageProgram& program) {
  constexpr Bytes kDecoders = 32_KiB;  // measured: what libjpeg keeps between pictures, rounded up
  const Bytes per_op = sizeof(ResizeStage) + sizeof(ViewStage) + sizeof(ReverseStage) + sizeof(ResizeStep) +
                       sizeof(Stage) + sizeof(Erasure) + kMostStrokes * sizeof(Stroke);
  return kDecoders + (program.ops.size() + 1) * per_op;
}

void ImageRun::reset() {
  damaged_ = false;
  dimensions_ = {};
}

Status place_ops(const ImageProgram& program, Dimensions picture, const PrepKey& key, Plan& plan) {
  plan.begin(picture);
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    KeyedRandom random(key.seed, key.epoch, key.position, i);
    const std::size_t erasures = plan.erasures().size();
    FORELOAD_TRY(program.ops[i]->place(plan, random));
    for (Erasure& erasure : plan.erasures().subspan(erasures)) erasure.op = i;
  }
  return {};
}

Result<Bytes> ImageRun::begin(std::span<const std::byte> sample, const PrepKey& key, const RowHint& rows) {
  FORELOAD_ASSIGN(const ImageFormat* format, image_format_of(sample));
  decoder_ = &decoder_of(*format);
  decoder_->hint_rows(rows);
  FORELOAD_ASSIGN(dimensions_, decoder_->open(sample, program_.limits));
  FORELOAD_TRY(place_ops(program_, dimensions_, key, plan_));
  if (program_.decode == Decode::kFast && decoder_->can_scale()) {
    const std::uint32_t eighths = plan_.source_geometry().smallest_scale();
    if (eighths < 8) {
      plan_.source_geometry().scale_source(eighths);
      decoder_->set_scale(eighths);
    }
  }
  plan_.settle();
  const Box box = plan_.stages()[0].geometry.source_box();
  decoder_memory_ = box.height > 0 ? decoder_->memory(box) : DecodeMemory{};
  return Scratch::padded(decoder_memory_.scratch) + plan_bytes() + decoder_memory_.library;
}

Status ImageRun::finish(std::span<std::byte> out) {
  Status status = decode(out);
  program_.tables.kernels->flush();
  damaged_ = decoder_->damaged();
  decoder_->close();
  if (status) erase(out);
  return status;
}

ImageDecoder& ImageRun::decoder_of(const ImageFormat& format) {
  auto& made = decoders_[static_cast<std::size_t>(&format - image_formats().data())];
  if (!made) made = format.make();
  return *made;
}

// Also lays out the pair of canvases.
Bytes ImageRun::plan_bytes() {
  pair_ = {};
  Bytes bytes = 0;
  const auto keep = [this](Dimensions size) {
    Bytes& room = pair_.bytes[pair_.next];
    room = std::max(room, Canvas::bytes(size));
    pair_.next ^= 1;
  };
  for (const Stage& stage : plan_.stages()) {
    bytes += stage_bytes(stage.geometry);
    if (stage.strokes.empty()) continue;
    Dimensions size = stage.geometry.size();
    keep(size);
    for (const Stroke& stroke : stage.strokes) {
      bytes += stroke_bytes(stroke, size);
      size = size_after(stroke, size);
      if (!works_in_place(stroke)) keep(size);
    }
  }
  pair_.next = 0;
  return bytes + Scratch::padded(pair_.bytes[0]) + Scratch::padded(pair_.bytes[1]);
}

Bytes ImageRun::stage_bytes(const Geometry& geometry) const {
  Bytes bytes = 0;
  for (const ResizeStep& step : geometry.steps()) {
    bytes += Scratch::padded(ResizeStage::bytes(step));
    if (!ViewStage::is_plain(step.view, step.in_x, step.in_y)) bytes += ViewStage::bytes(step.in_x);
    if (ReverseStage::is_needed(step.view, step.in_x, step.in_y)) {
      bytes += ReverseStage::bytes(step.view, step.in_x, step.in_y);
    }
  }
  const View& last = geometry.last_view();
  if (ReverseStage::is_needed(last, whole(last.x), whole(last.y))) {
    bytes += ReverseStage::bytes(last, whole(last.x), whole(last.y));
  }
  return bytes;
}

// Connects the stages, the last one first: a view that begins with black rows pushes them at once.
RowSink& ImageRun::build(const Geometry& geometry, RowSink& last) {
  RowSink* next = &last;
  const auto reverse = [&](std::size_t i, const View& view, Interval x, Interval y) {
    if (!ReverseStage::is_needed(view, x, y)) return;
    reverses_[i].prepare(view, x, y, scratch_, *next);
    next = &reverses_[i];
  };
  const auto steps = geometry.steps();
  reverse(steps.size(), geometry.last_view(), whole(geometry.last_view().x), whole(geometry.last_view().y));
  for (std::size_t i = steps.size(); i-- > 0;) {
    const ResizeStep& step = steps[i];
    resizes_[i].prepare(step, scratch_, *next);
    next = &resizes_[i];
    if (!ViewStage::is_plain(step.view, step.in_x, step.in_y)) {
      views_[i].prepare(step.view, step.in_x, step.in_y, scratch_, *next);
      views_[i].start();
      next = &views_[i];
    }
    reverse(i, step.view, step.in_x, step.in_y);
  }
  return *next;
}

Status ImageRun::decode(std::span<std::byte> out) {
  FORELOAD_TRY(scratch_.reset(Scratch::padded(decoder_memory_.scratch) + plan_bytes()));
  decoder_scratch_ = scratch_.take<std::uint8_t>(decoder_memory_.scratch);
  for (std::size_t i = 0; i < 2; ++i) canvases_[i] = scratch_.take<std::uint8_t>(pair_.bytes[i]);
  Canvas canvas;
  for (const Stage& stage : plan_.stages()) {
    const bool is_last = &stage == &plan_.stages().back();
    const Canvas target = is_last ? Canvas{} : next_canvas(stage.geometry.size());
    if (is_last) {
      writer_.prepare(program_.tables, stage.geometry.last_view(), out);
    } else {
      canvas_writer_.prepare(stage.geometry.last_view(), target);
    }
    RowSink& first = build(stage.geometry, is_last ? static_cast<RowSink&>(writer_) : canvas_writer_);
    const Box box = stage.geometry.source_box();
    if (!canvas.data) {
      FORELOAD_TRY(decode_rows(first));
    } else {
      for (std::size_t y = box.y; y < std::size_t{box.y} + box.height; ++y) {
        first.push(canvas.row(y) + box.x * kPixelBytes);
      }
    }
    if (!is_last) canvas = paint(stage, target);
  }
  return {};
}

Status ImageRun::decode_rows(RowSink& first) {
  const Box box = plan_.stages()[0].geometry.source_box();
  if (box.height == 0) return {};
  FORELOAD_TRY(decoder_->start(box, decoder_scratch_));
  for (std::uint32_t row = 0; row < box.height; ++row) {
    FORELOAD_ASSIGN(const std::uint8_t* pixels, decoder_->next_row());
    first.push(pixels);
  }
  return {};
}

Canvas ImageRun::next_canvas(Dimensions size) {
  const Canvas canvas{canvases_[pair_.next].data(), size};
  pair_.next ^= 1;
  return canvas;
}

Canvas ImageRun::paint(const Stage& stage, Canvas canvas) {
  for (const Stroke& stroke : stage.strokes) {
    const Dimensions size = size_after(stroke, canvas.size);
    const Canvas to = works_in_place(stroke) ? canvas : next_canvas(size);
    foreload::paint(stroke, canvas, to, scratch_);
    canvas = to;
  }
  return canvas;
}

void ImageRun::erase(std::span<std::byte> out) {
  for (const Erasure& erasure : plan_.erasures()) {
    const bool is_before = program_.normalize && erasure.op < program_.normalize_op;
    foreload::erase({out, program_.size, program_.dtype, program_.layout}, erasure.box, erasure.value,
                    is_before ? program_.normalize : std::nullopt);
  }
}

}  // namespace foreload
