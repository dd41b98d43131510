// SampleConverter: the bytes of one sample in, the bytes of its record out. One per thread; owns the memory of the
// rewriter. Deterministic: the result depends on bytes, name and options alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "pipeline/scratch_pool.h"
#include "prep/jpeg_rewrite.h"
#include "record/convert.h"

namespace foreload {

// What became of a sample. The letters stand in the accounts of a shard.
enum class Outcome : char {
  kRewritten = 'r',
  kShrunk = 's',
  kCopied = 'c',
  kDamaged = 'd',  // an image that decodes with complaints: copied
  kBad = 'b',      // copied, because the options say so
};
inline constexpr std::string_view kOutcomes = "rscdb";

struct ConvertedSample {
  std::vector<std::byte> bytes;
  Dimensions size;                  // zeros: no image
  std::vector<std::uint32_t> rows;  // see record_rows.h
  Outcome outcome = Outcome::kCopied;
  std::string reason;  // of a bad one
};

// Whether the record is a JPEG although `key` is the name of something else.
bool becomes_jpeg(std::string_view key, Outcome outcome);

class SampleConverter {
 public:
  // Both must outlive this.
  SampleConverter(const ConvertOptions& options, ScratchPool& pool) : options_(options), pool_(pool) {}

  // Errors: kBadSample with the reason, if the options do not allow to keep it; kNoMemory; kCancelled when the pool
  // was stopped.
  Result<ConvertedSample> convert(std::string_view key, std::vector<std::byte> bytes);

 private:
  Result<ConvertedSample> improve(std::string_view key, std::vector<std::byte>& bytes);
  Result<ConvertedSample> rewrite(std::span<const std::byte> jpeg, Dimensions size);
  Result<ConvertedSample> rewrite_or_copy(std::vector<std::byte>& jpeg, Dimensions size);
  Result<ConvertedSample> shrink(std::span<const std::byte> image, Dimensions to);
  Result<ConvertedSample> copy(std::vector<std::byte>& image, Dimensions size, Outcome outcome);
  Result<bool> is_damaged(std::span<const std::byte> image);
  Status take_memory(Bytes bytes);
  Status take_beside_rewriter(Bytes bytes);
  void give_memory();

  const ConvertOptions& options_;
  ScratchPool& pool_;
  JpegRewriter rewriter_;
  Bytes taken_ = 0;  // from the pool
};

}  // namespace foreload
