// Only what is an image by its name is looked into: the bytes of a .bin may begin like a JPEG by chance, and a chain
// that takes them as an array must get them unchanged.
#include "record/sample_converter.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "prep/chain.h"
#include "prep/image.h"
#include "prep/jpeg.h"
#include "prep/jpeg_layout.h"
#include "record/shrink.h"

namespace foreload {

namespace {

constexpr Bytes kMostHeld = 64_MiB;  // by a rewriter between two samples
constexpr std::array<std::string_view, 3> kNoImages{"npy", "bin", "raw"};

bool is_image_name(std::string_view key) {
  const std::string_view extension = key.substr(key.rfind('.') + 1);
  for (const std::string_view other : kNoImages) {
    const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); };
    if (std::equal(other.begin(), other.end(), extension.begin(), extension.end(), same)) return false;
  }
  return true;
}

bool has_jpeg_name(std::string_view key) {
  const std::string_view extension = key.substr(key.rfind('.') + 1);
  return !extension.empty() && (extension.front() == 'j' || extension.front() == 'J');
}

// Decodes the whole picture, and does nothing else.
Result<Chain> decoding_chain(const Limits& limits) {
  ChainOptions program;
  program.transforms = {resize(1, 1)};
  program.dtype = DType::kU8;
  program.limits = limits;
  return Chain::compile(program);
}

// Empty when it is not crop-addressable; a copy of a converted sample is.
std::vector<std::uint32_t> rows_of(std::span<const std::byte> jpeg) {
  std::vector<std::uint32_t> rows;
  const auto layout = parse_jpeg_layout(jpeg);
  if (!layout || !jpeg_row_offsets(jpeg, *layout, rows).ok()) rows.clear();
  return rows;
}

ConvertedSample copy_of(std::vector<std::byte>& bytes, Outcome outcome) {
  ConvertedSample copy;
  copy.bytes = std::move(bytes);
  copy.outcome = outcome;
  return copy;
}

}  // namespace

bool becomes_jpeg(std::string_view key, Outcome outcome) {
  return outcome == Outcome::kShrunk && !has_jpeg_name(key);
}

// Everything beyond the thread's own share. What the rewriter holds for its next file is part of `bytes`, or has to
// fit into that share beside them.
Status SampleConverter::take_memory(Bytes bytes) {
  if (bytes > pool_.largest()) {
    return Error{Code::kNoMemory, fmt::format("converting it takes {}, but there is memory for {}: use a machine with "
                                              "more, or fewer threads",
                                              format_bytes(bytes), format_bytes(pool_.largest()))};
  }
  if (bytes <= pool_.own_share()) return {};
  if (!pool_.take(bytes - pool_.own_share())) return Error{Code::kCancelled, "stopped"};
  taken_ = bytes - pool_.own_share();
  return {};
}

Status SampleConverter::take_beside_rewriter(Bytes bytes) {
  if (rewriter_.held() + bytes > pool_.own_share()) rewriter_.trim();
  return take_memory(bytes);
}

void SampleConverter::give_memory() {
  if (rewriter_.held() > std::min(pool_.own_share(), kMostHeld)) rewriter_.trim();
  pool_.give(std::exchange(taken_, 0));
}

Result<ConvertedSample> SampleConverter::rewrite(std::span<const std::byte> jpeg, Dimensions size) {
  FORELOAD_TRY(take_memory(JpegRewriter::memory(size, jpeg.size())));
  auto rewritten = rewriter_.rewrite(jpeg, options_.limits);
  Result<ConvertedSample> result = [&]() -> Result<ConvertedSample> {
    if (!rewritten) return rewritten.error();
    ConvertedSample sample;
    sample.outcome = Outcome::kRewritten;
    sample.bytes.assign(rewritten->begin(), rewritten->end());
    sample.rows = rows_of(sample.bytes);
    FORELOAD_CHECK(!sample.rows.empty(), "the rewriter makes crop-addressable files");
    return sample;
  }();
  give_memory();
  return result;
}

// Whether its decoder complains. kBadSample: the loader would not deliver it.
Result<bool> SampleConverter::is_damaged(std::span<const std::byte> image) {
  FORELOAD_ASSIGN(const Chain chain, decoding_chain(options_.limits));
  std::optional<ChainRunner> runner(std::in_place, chain);
  FORELOAD_ASSIGN(const Bytes needed, runner->begin(image, {}));
  FORELOAD_TRY(take_beside_rewriter(needed));
  std::array<std::byte, 3> pixel{};
  const Status status = runner->finish(pixel);
  const bool damaged = runner->damaged();
  runner.reset();  // before its memory is given back
  give_memory();
  FORELOAD_TRY(status);
  return damaged;
}

// Nothing is copied that was not decoded once: a broken image would show only when it is loaded.
Result<ConvertedSample> SampleConverter::copy(std::vector<std::byte>& image, Dimensions size, Outcome outcome) {
  FORELOAD_ASSIGN(const bool damaged, is_damaged(image));
  ConvertedSample copy = copy_of(image, damaged ? Outcome::kDamaged : outcome);
  copy.size = size;
  if (copy.outcome == Outcome::kCopied) copy.rows = rows_of(copy.bytes);
  return copy;
}

Result<ConvertedSample> SampleConverter::rewrite_or_copy(std::vector<std::byte>& jpeg, Dimensions size) {
  auto sample = rewrite(jpeg, size);
  if (sample) {
    sample->size = size;
    return sample;
  }
  if (sample.error().code == Code::kBadSample) return copy(jpeg, size, Outcome::kDamaged);
  if (sample.error().code == Code::kInvalid) return copy(jpeg, size, Outcome::kCopied);
  return sample;
}

Result<ConvertedSample> SampleConverter::shrink(std::span<const std::byte> image, Dimensions to) {
  auto shrunk = shrink_image(image, {to, options_.quality, options_.limits},
                             [this](Bytes needed) { return take_beside_rewriter(needed); });
  give_memory();
  if (!shrunk) return shrunk.error();
  auto sample = rewrite_or_copy(*shrunk, to);
  if (sample) sample->outcome = Outcome::kShrunk;
  return sample;
}

// Moves from `bytes` only when it succeeds.
Result<ConvertedSample> SampleConverter::improve(std::string_view key, std::vector<std::byte>& bytes) {
  if (bytes.empty()) return Error{Code::kBadSample, "it is empty"};
  if (bytes.size() > options_.limits.sample_bytes) {
    return Error{Code::kBadSample, fmt::format("it has {}, more than the limit of {}", format_bytes(bytes.size()),
                                               format_bytes(options_.limits.sample_bytes))};
  }
  if (!is_image_name(key)) return copy_of(bytes, Outcome::kCopied);
  FORELOAD_ASSIGN(const Dimensions size, image_dimensions(bytes));
  FORELOAD_TRY(check_pixels(size, options_.limits));
  const bool is_larger = options_.max_side > 0 && std::max(size.width, size.height) > options_.max_side;
  if (is_larger) return shrink(bytes, shrunk_size(size, options_.max_side));
  if (options_.keep_original || !is_jpeg(bytes)) return copy(bytes, size, Outcome::kCopied);
  return rewrite_or_copy(bytes, size);
}

Result<ConvertedSample> SampleConverter::convert(std::string_view key, std::vector<std::byte> bytes) {
  auto sample = improve(key, bytes);
  if (sample || sample.error().code != Code::kBadSample || options_.on_bad == OnBadSample::kFail) return sample;
  ConvertedSample kept = copy_of(bytes, Outcome::kBad);
  kept.reason = sample.error().message;
  return kept;
}

}  // namespace foreload
