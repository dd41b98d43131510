// PrepStages: one pass of a chain over some samples, cut off after decoding, before normalising, and whole: what lies
// between two of them is a stage. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "foreload/result.h"
#include "prep/chain.h"
#include "prep/chain_image.h"
#include "prep/image.h"
#include "prep/plan.h"
#include "probe/prep_work.h"

namespace foreload {

// A sample in memory, with what a record index knows about it.
struct PrepSample {
  std::span<const std::byte> bytes;
  std::span<const std::uint32_t> rows;
};

// Decodes what a chain of image ops needs of a sample, and throws the rows away.
class DecodeAlone {
 public:
  static Result<DecodeAlone> make(const ChainOptions& options);

  Status run(const PrepSample& sample, const PrepKey& key);

 private:
  DecodeAlone() : decoders_(image_formats().size()) {}

  ImageProgram program_;
  std::vector<std::unique_ptr<ImageDecoder>> decoders_;
  Plan plan_;
  std::vector<std::uint8_t> scratch_;
};

class PrepStages {
 public:
  static Result<PrepStages> make(const ChainOptions& options);

  bool is_image() const { return decode_.has_value(); }
  bool separates_pixels() const { return pixels_ != nullptr; }  // the chain also works without normalising, in u8

  // CPU seconds of this thread. REQUIRES for the first two: is_image(), separates_pixels().
  Result<double> decode(std::span<const PrepSample> samples, unsigned round);
  Result<double> pixels(std::span<const PrepSample> samples, unsigned round);
  Result<double> whole(std::span<const PrepSample> samples, unsigned round);

 private:
  // A chain with all that it needs to run.
  struct Runner {
    explicit Runner(Chain compiled) : chain(std::move(compiled)), runner(chain), tensors(chain.output().bytes()) {}
    Status run(const PrepSample& sample, const PrepKey& key);

    Chain chain;
    ChainRunner runner;
    Tensors tensors;
  };

  PrepStages() = default;

  std::optional<DecodeAlone> decode_;
  std::unique_ptr<Runner> pixels_;
  std::unique_ptr<Runner> whole_;
};

}  // namespace foreload
