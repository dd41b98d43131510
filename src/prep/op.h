// Op: one transform of a chain, checked and ready. Setup and run are split: declare() says once what comes
// out, place() is called per sample and only describes what is to be done; pixels are touched later, for all ops.
// A new transform is one file that defines an OpEntry, its line in ops.cc, and a test.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "foreload/batch.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "foreload/transform.h"
#include "prep/batch_stage.h"
#include "prep/plan.h"

namespace foreload {

inline constexpr std::size_t kMostTransforms = 64;  // of a chain

// Samples that are arrays already.
struct ArraySpec {
  TensorSpec tensor;  // of a sample; the most that a ragged one may have
  bool headerless = false;
  std::vector<std::uint64_t> window{};  // of every dimension; empty: the whole
  bool random_window = false;
  bool ragged = false;
  bool truncate = false;
  std::function<void(Bytes sample)> emulated_work{};  // for tests: what stands in for decoding; of many threads
};

// What the ops of a chain make of a sample; each op adds to it, in the order of the chain.
struct Declaration {
  std::optional<Dimensions> size;  // of the picture, once it no longer depends on the sample
  std::optional<MeanStd> normalize;
  std::vector<std::array<double, 3>> erased_with;  // one per random_erasing
  std::optional<ArraySpec> array;
  std::optional<MixSpec> mix;
};

class Op {
 public:
  virtual ~Op() = default;

  // kInvalid when the op can not follow what is declared so far.
  virtual Status declare(Declaration& declared) const = 0;
  // Draws this sample's parameters and adds what they mean to the plan; nothing when the op is not to be applied.
  // kBadSample: the picture does not allow it. Const and without state: called from many threads.
  virtual Status place(Plan& plan, KeyedRandom& random) const;
};

struct OpEntry {
  const char* name;
  std::vector<const char*> params;  // in the order in which they may be given without a name
  Result<std::unique_ptr<Op>> (*make)(const Transform&);
};

// Refuses an op that moves or changes pixels after normalize: its black border would no longer be black.
Status check_before_normalize(const Declaration& declared, const char* op);
// Refuses an op that moves or changes pixels after random_erasing, which happens to the finished tensor.
Status check_before_erasing(const Declaration& declared, const char* op);

std::span<const OpEntry> op_entries();
// kInvalid lists the names that exist.
Result<const OpEntry*> find_op(std::string_view name);
// Checks name and parameter names, then lets the op check the values.
Result<std::unique_ptr<Op>> make_op(const Transform& transform);

OpEntry array_op();
OpEntry center_window_op();
OpEntry cutmix_op();
OpEntry mixup_op();
OpEntry ragged_op();
OpEntry random_window_op();
OpEntry center_crop_op();
OpEntry color_jitter_op();
OpEntry gaussian_blur_op();
OpEntry grayscale_op();
OpEntry normalize_op();
OpEntry pad_op();
OpEntry rand_augment_op();
OpEntry random_affine_op();
OpEntry random_crop_op();
OpEntry random_erasing_op();
OpEntry random_flip_op();
OpEntry random_grayscale_op();
OpEntry random_resized_crop_op();
OpEntry random_rotation_op();
OpEntry random_vertical_flip_op();
OpEntry resize_op();
OpEntry trivial_augment_wide_op();

}  // namespace foreload
