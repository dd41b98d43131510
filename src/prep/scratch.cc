#include "prep/scratch.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"

namespace foreload {

Status Scratch::reset(Bytes bytes) {
  if (padded(bytes) > capacity_) trim(0);
  taken_ = 0;
  reserved_ = padded(bytes);
  if (reserved_ <= capacity_) return {};
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, reserved_)));
  if (!data_) {
    return Error{Code::kNoMemory, fmt::format("{} of working memory for one sample could not be had; lower the memory "
                                              "budget or the number of threads",
                                              format_bytes(reserved_))};
  }
  capacity_ = reserved_;
  return {};
}

void* Scratch::take_bytes(std::size_t bytes) {
  FORELOAD_CHECK(padded(bytes) <= reserved_ - taken_, "begin() counted all pieces");
  void* piece = data_.get() + taken_;
  taken_ += padded(bytes);
  return piece;
}

void Scratch::trim(Bytes keep) {
  if (capacity_ <= keep) return;
  data_.reset();
  capacity_ = reserved_ = taken_ = 0;
}

}  // namespace foreload
