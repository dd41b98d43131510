// ImageRun: one image sample at a time through the plan that a chain's ops made for it. Owns decoders, stages and
// scratch, all used again for the next sample. One per ChainRunner; not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "foreload/batch.h"
#include "foreload/loader.h"
#include "foreload/result.h"
#include "prep/canvas.h"
#include "prep/image.h"
#include "prep/op.h"
#include "prep/output.h"
#include "prep/plan.h"
#include "prep/resize.h"
#include "prep/rows.h"
#include "prep/scratch.h"

namespace foreload {

struct PrepKey;

// What all runners of a chain of image ops share.
struct ImageProgram {
  std::vector<std::unique_ptr<Op>> ops;
  Limits limits;
  Decode decode = Decode::kExact;
  Dimensions size;  // of the result
  DType dtype = DType::kF32;
  Layout layout = Layout::kNchw;
  std::optional<MeanStd> normalize;
  std::uint32_t normalize_op = 0;  // which one it is
  OutputTables tables;
};

// What the ops do to the sample; to be settled.
Status place_ops(const ImageProgram& program, Dimensions picture, const PrepKey& key, Plan& plan);

class ImageRun {
 public:
  explicit ImageRun(const ImageProgram& program);

  // Fixed memory beyond sizeof, before any sample.
  static Bytes fixed_bytes(const ImageProgram& program);

  // Forgets the last sample's dimensions and damage.
  void reset();
  // As of ChainRunner.
  Result<Bytes> begin(std::span<const std::byte> sample, const PrepKey& key, const RowHint& rows);
  Status finish(std::span<std::byte> out);

  Scratch& scratch() { return scratch_; }
  Dimensions dimensions() const { return dimensions_; }
  bool damaged() const { return damaged_; }

 private:
  // Two canvases: a picture is in one of them, what becomes of it may go to the other.
  struct CanvasPair {
    std::array<Bytes, 2> bytes{};
    unsigned next = 0;
  };

  ImageDecoder& decoder_of(const ImageFormat& format);
  Bytes plan_bytes();
  Bytes stage_bytes(const Geometry& geometry) const;
  RowSink& build(const Geometry& geometry, RowSink& last);
  Status decode(std::span<std::byte> out);
  Status decode_rows(RowSink& first);
  Canvas paint(const Stage& stage, Canvas canvas);
  Canvas next_canvas(Dimensions size);
  void erase(std::span<std::byte> out);

  const ImageProgram& program_;
  std::vector<std::unique_ptr<ImageDecoder>> decoders_;  // one per format, made when first needed
  std::vector<ResizeStage> resizes_;
  std::vector<ViewStage> views_;
  std::vector<ReverseStage> reverses_;
  TensorWriter writer_;
  CanvasWriter canvas_writer_;
  Plan plan_;
  Scratch scratch_;
  std::array<std::span<std::uint8_t>, 2> canvases_;
  CanvasPair pair_;
  ImageDecoder* decoder_ = nullptr;  // of the sample between begin() and finish()
  DecodeMemory decoder_memory_;
  std::span<std::uint8_t> decoder_scratch_;
  Dimensions dimensions_;
  bool damaged_ = false;
};

}  // namespace foreload
