#include "source/describe.h"

#include <fmt/format.h>

namespace foreload {

std::string describe_sample(const Source& source, SampleId id) {
  const Extent extent = source.locate(id);
  return fmt::format("sample {} ({}) of {}: {} at offset {}, {} bytes", id, source.key(id), source.uri(),
                     extent.display, extent.offset, extent.length);
}

}  // namespace foreload
