// Chain: the prep program. Transforms are checked once against each other and yield the shape of the
// result; then every sample runs straight into its place in the batch. Immutable: shared by all workers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foreload/batch.h"
#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/transform.h"
#include "prep/batch_stage.h"
#include "prep/geometry.h"
#include "prep/row_hint.h"

namespace foreload {

struct ChainOptions {
  std::vector<Transform> transforms;
  DType dtype = DType::kF32;
  Layout layout = Layout::kNchw;
  Limits limits{};
  Decode decode = Decode::kExact;
};

// The key of a sample's randomness; op indices are added by the chain.
struct PrepKey {
  std::uint64_t seed = 0;
  Epoch epoch = 0;
  Position position = 0;
};

class Chain {
 public:
  // kInvalid names the unknown or contradictory transform and what would be accepted.
  static Result<Chain> compile(const ChainOptions& options);
  Chain(Chain&&) noexcept;
  Chain& operator=(Chain&&) noexcept;
  ~Chain();

  const TensorSpec& output() const;
  // What happens to a batch as a whole. Samples of varying length: the bytes of an element, otherwise 0.
  Bytes ragged_element() const;
  bool mixes() const;                                     // pairs are mixed
  std::uint64_t unit() const { return mixes() ? 2 : 1; }  // samples that a learner takes together
  bool has_batch_stage() const { return ragged_element() > 0 || mixes(); }
  void finish_batch(const BatchBlock& block) const;
  // Fixed memory of a ChainRunner, before any sample.
  Bytes runner_bytes() const;

 private:
  friend class ChainRunner;
  friend class CropForesight;
  struct Program;
  explicit Chain(std::unique_ptr<const Program> program);
  std::unique_ptr<const Program> program_;
};

// What `LoaderOptions::chain` means when it is empty, judged by the first sample's bytes: images by their
// magic, .npy by its header. Empty when it is neither: then the chain has to be given.
std::vector<Transform> default_chain(std::span<const std::byte> first_sample);

// Runs a chain; one per worker thread. Owns its scratch memory. The chain must outlive it.
class ChainRunner {
 public:
  explicit ChainRunner(const Chain& chain);
  ChainRunner(ChainRunner&&) noexcept;
  ~ChainRunner();

  // Reads the header of `sample`, checks it against the limits, draws the random parameters, and
  // returns how much scratch memory finish() will need in all (decoder's included).
  // `rows` is what a record index knows about the sample; of a partial one, only what is there is looked at, and if
  // that is not enough, kBadSample says nothing about the sample.
  // Errors: kBadSample, with the reason. `sample` and `rows` must live until finish() returns.
  Result<Bytes> begin(std::span<const std::byte> sample, const PrepKey& key, const RowHint& rows = {});
  // Decodes, transforms and writes output().bytes() to `out`.
  // REQUIRES: begin() succeeded for this sample, its scratch was granted.
  Status finish(std::span<std::byte> out);
  // Scratch memory that is held now; trim() frees what exceeds `keep`.
  Bytes scratch_bytes() const;
  void trim(Bytes keep);
  // Of the last sample, when ragged: its elements.
  std::uint64_t length() const;
  // Of the last sample. Zero for arrays.
  Dimensions dimensions() const;
  // The last sample was delivered although its decoder complained: wrong data inside a complete file. Only
  // the part that was decoded is known.
  bool damaged() const;

 private:
  friend class Chain;  // for the size of State
  struct State;
  std::unique_ptr<State> state_;
};

// Says in advance which part of a sample a chain will look at. Not thread-safe. The chain must outlive it.
class CropForesight {
 public:
  explicit CropForesight(const Chain& chain);
  ~CropForesight();

  // The box of a picture of this size that holds all pixels, also of one that is decoded at a fraction of its size.
  // Nothing: the chain is for arrays, or needs no pixel at all.
  std::optional<Box> box(Dimensions picture, const PrepKey& key);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Width and height from the header alone; kBadSample when it is no image.
Result<Dimensions> image_dimensions(std::span<const std::byte> sample);

}  // namespace foreload
