// Region: page-aligned memory that costs nothing until it is touched, of this process alone or a shared file. The home
// of arenas and rings; their layouts hold offsets only, so each process may map it elsewhere.
#pragma once

#include <cstddef>
#include <span>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class Region {
 public:
  static Result<Region> map(Bytes bytes, const char* purpose);
  // A part of the file, shared with whoever else maps it. The descriptor may be closed afterwards. REQUIRES: `offset`
  // is a multiple of the page size.
  static Result<Region> map_file(int file, Bytes offset, Bytes bytes, const char* purpose);
  // As map_file, but a page that is written to becomes this process's own, until forget().
  static Result<Region> map_copy(int file, Bytes offset, Bytes bytes, const char* purpose);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::span<std::byte> bytes() const { return {data_, size_}; }
  // Of a copy: what this process wrote there; the file is seen again. REQUIRES: whole pages.
  void forget(Bytes offset, Bytes bytes) const;

 private:
  Region(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  static Result<Region> map(int flags, int file, Bytes offset, Bytes bytes, const char* purpose);
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace foreload
