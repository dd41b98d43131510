#include "prep/array_runner.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text.h"
#include "prep/array_window.h"

namespace foreload {

namespace {

Error bad(std::string reason) {
  return {Code::kBadSample, std::move(reason)};
}

// The elements of a sample whose length is its own.
Result<std::span<const std::byte>> ragged_data(std::span<const std::byte> sample, const ArraySpec& spec) {
  const DType dtype = spec.tensor.dtype;
  if (!spec.headerless) {
    FORELOAD_ASSIGN(const NpyHeader header, parse_npy(sample));
    if (header.rank != 1) return bad(fmt::format(".npy: it has {} dimensions, ragged samples have 1", header.rank));
    FORELOAD_ASSIGN(sample, npy_data(sample, TensorSpec{dtype, {header.shape()[0]}}));
  }
  if (sample.size() % dtype_size(dtype) == 0) return sample;
  return bad(fmt::format("{} bytes are no whole number of {} elements", sample.size(), dtype_name(dtype)));
}

}  // namespace

TensorSpec array_output(const ArraySpec& spec) {
  return spec.window.empty() ? spec.tensor : TensorSpec{spec.tensor.dtype, spec.window};
}

Status ArrayRunner::begin(const ArraySpec& spec, std::span<const std::byte> sample, KeyedRandom random) {
  spec_ = &spec;
  if (spec.emulated_work) spec.emulated_work(sample.size());
  if (spec.ragged) {
    FORELOAD_ASSIGN(data_, ragged_data(sample, spec));
    const std::size_t element = dtype_size(spec.tensor.dtype);
    const std::uint64_t most = spec.tensor.shape[0];
    length_ = data_.size() / element;
    if (length_ <= most) return {};
    if (!spec.truncate) {
      return bad(fmt::format("{} elements, more than the chain's max_length of {}", format_count(length_),
                             format_count(most)));
    }
    length_ = most;
    data_ = data_.first(most * element);
    return {};
  }
  FORELOAD_ASSIGN(data_, spec.headerless ? headerless_data(sample, spec.tensor) : npy_data(sample, spec.tensor));
  for (std::size_t i = 0; i < spec.window.size(); ++i) {
    const std::uint64_t room = spec.tensor.shape[i] - spec.window[i];
    origin_[i] = spec.random_window ? random.below(room + 1) : room / 2;
  }
  return {};
}

void ArrayRunner::finish(std::span<std::byte> out) const {
  if (!spec_->window.empty()) {
    const auto& shape = spec_->tensor.shape;
    copy_window(data_, dtype_size(spec_->tensor.dtype), {shape, {origin_.data(), shape.size()}, spec_->window}, out);
  } else if (!data_.empty()) {
    std::memcpy(out.data(), data_.data(), data_.size());
  }
}

}  // namespace foreload
