// Region: page-aligned anonymous memory that costs nothing until it is touched. The home of arenas and
// rings; their layouts hold offsets only, so a region may also be a shared mapping.
#pragma once

#include <cstddef>
#include <span>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class Region {
 public:
  static Result<Region> map(Bytes bytes, const char* purpose);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  Region(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace foreload
