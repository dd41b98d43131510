// What a tar archive that we write is made of: ustar headers, with a pax header before them where a name or a size
// does not fit. Owner, mode and time are fixed, so the same members always give the same bytes. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "foreload/types.h"

namespace foreload {

inline constexpr Bytes kTarBlockBytes = 512;
inline constexpr Bytes kTarEndBytes = 2 * kTarBlockBytes;  // zeros that end an archive

// What `size` bytes of content take up, rounded up to whole blocks.
constexpr Bytes tar_padded(Bytes size) {
  return (size + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

// Everything that stands before the content of a regular file; whole blocks.
// REQUIRES: `name` is a plain relative path, without NUL.
std::string tar_file_header(std::string_view name, Bytes size);

}  // namespace foreload
