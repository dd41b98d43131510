// The pieces of work that measure_prep times. Each belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foreload/result.h"
#include "prep/chain.h"
#include "prep/image.h"
#include "prep/jpeg_rewrite.h"
#include "prep/output.h"
#include "prep/resize.h"
#include "prep/scratch.h"
#include "probe/jpeg_copy.h"
#include "probe/prep_pictures.h"

namespace foreload {

inline constexpr unsigned kPrepSide = 224;  // pixels of the result

// CPU time of this thread: what others run on the machine does not count.
double thread_seconds();

template <typename Work>
Result<double> timed(Work work) {
  const double start = thread_seconds();
  FORELOAD_TRY(work());
  return thread_seconds() - start;
}

// The tensors of a batch, one after the other and aligned as in a ring.
class Tensors {
 public:
  explicit Tensors(Bytes bytes) : bytes_(bytes) {}
  Result<std::span<std::byte>> next();

 private:
  Bytes bytes_;
  Scratch memory_;
  std::size_t count_ = 0;
};

enum class Kernels { kBest, kPlain };

// Works on pixels in memory, which are noise: what they show costs nothing.
class PixelWork {
 public:
  explicit PixelWork(std::uint32_t widest);

  Status resize(const std::vector<Box>& crops, Kernels kernels);
  Status finish(const std::vector<Box>& crops);  // resize, flip every other one, normalise to the tensor

 private:
  Status run(const Box& crop, bool mirrored, Kernels kernels, RowSink& to);
  Status push_rows(std::uint32_t count, RowSink& to);

  std::size_t row_bytes_;
  std::vector<std::uint8_t> rows_;
  Tensors tensors_;
  OutputTables tables_;
  Geometry geometry_;
  Scratch scratch_;
  ResizeStage stage_;
  TensorWriter writer_;
};

// Decodes boxes and throws the rows away.
class DecodeWork {
 public:
  DecodeWork();
  // `boxes` empty: the whole pictures.
  Status run(const std::vector<std::vector<std::byte>>& jpegs, const std::vector<Box>& boxes);

 private:
  Status decode(const std::vector<std::byte>& jpeg, Box box);

  std::unique_ptr<ImageDecoder> decoder_;
  std::vector<std::uint8_t> scratch_;
};

// RandomResizedCrop(224) + flip + normalise to f32.
class ChainWork {
 public:
  static Result<ChainWork> make(Decode decode);
  Status run_raw(const PrepPictures& pictures, unsigned round);
  // With the row offsets that the index of a converted dataset holds.
  Status run_converted(const PrepPictures& pictures, unsigned round);

 private:
  explicit ChainWork(std::unique_ptr<Chain> chain);
  Status run(std::span<const std::byte> jpeg, const PrepKey& key, std::span<const std::uint32_t> rows);

  std::unique_ptr<Chain> chain_;
  ChainRunner runner_;
  Tensors tensors_;
};

// The lossless rewrite with its proof, and libjpeg's bare copy of the same coefficients, picture by picture.
class RewriteWork {
 public:
  struct Seconds {
    double rewrite = 0;
    double copy = 0;
  };
  // Some of the pictures, others in every round. Zeros when none of them can be rewritten.
  Result<Seconds> run(const PrepPictures& pictures, unsigned round);

 private:
  JpegRewriter rewriter_;
  JpegCopier copier_;
};

}  // namespace foreload
