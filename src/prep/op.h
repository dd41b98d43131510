// Op: one transform of a chain, checked and ready. Setup and run are split: declare() says once what comes
// out, place() is called per sample and only describes geometry; pixels are moved later, all ops at once.
// A new transform is one file that defines an OpEntry, its line in ops.cc, and a test.
#pragma once

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
#include "prep/geometry.h"

namespace foreload {

inline constexpr std::size_t kMostTransforms = 64;  // of a chain

// Samples that are arrays already.
struct ArraySpec {
  TensorSpec tensor;
  bool headerless = false;
};

// What the ops of a chain make of a sample; each op adds to it, in the order of the chain.
struct Declaration {
  std::optional<Dimensions> size;  // of the picture, once it no longer depends on the sample
  std::optional<MeanStd> normalize;
  std::optional<ArraySpec> array;
};

class Op {
 public:
  virtual ~Op() = default;

  // kInvalid when the op can not follow what is declared so far.
  virtual Status declare(Declaration& declared) const = 0;
  // Draws this sample's parameters and applies them to the geometry. kBadSample: the picture does not
  // allow it. Const and without state: called from many threads.
  virtual Status place(Geometry& geometry, KeyedRandom& random) const;
};

struct OpEntry {
  const char* name;
  std::vector<const char*> params;  // in the order in which they may be given without a name
  Result<std::unique_ptr<Op>> (*make)(const Transform&);
};

// Refuses an op that moves pixels after normalize: its black border would no longer be black.
Status check_before_normalize(const Declaration& declared, const char* op);

std::span<const OpEntry> op_entries();
// kInvalid lists the names that exist.
Result<const OpEntry*> find_op(std::string_view name);
// Checks name and parameter names, then lets the op check the values.
Result<std::unique_ptr<Op>> make_op(const Transform& transform);

OpEntry array_op();
OpEntry center_crop_op();
OpEntry normalize_op();
OpEntry random_flip_op();
OpEntry random_resized_crop_op();
OpEntry resize_op();

}  // namespace foreload
