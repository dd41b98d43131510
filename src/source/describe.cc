#include "source/describe.h"

#include <fmt/format.h>

#include "source/warnings.h"

namespace foreload {

std::string describe_sample(const Source& source, SampleId id) {
  const Extent extent = source.locate(id);
  return fmt::format("sample {} ({}) of {}: {} at offset {}, {} bytes", id, printable(source.key(id)),
                     printable(source.uri()), printable(extent.display), extent.offset, extent.length);
}

Error data_changed(const Source& source, SampleId id, const FileStamp& found) {
  const Extent extent = source.locate(id);
  const FileStamp& then = extent.stamp;
  if (extent.store != nullptr) {
    return {Code::kDataChanged,
            fmt::format("{}: the object changed since it was indexed (size {} then, {} now; {}){}",
                        describe_sample(source, id), then.size, found.size,
                        then.mtime_ns == found.mtime_ns ? "the same tag" : "another tag", kRebuildAdvice)};
  }
  return {Code::kDataChanged,
          fmt::format(
              "{}: the file changed since it was indexed (size {} then, {} now; modification time {} ns then, {} ns "
              "now){}",
              describe_sample(source, id), then.size, found.size, then.mtime_ns, found.mtime_ns, kRebuildAdvice)};
}

}  // namespace foreload
