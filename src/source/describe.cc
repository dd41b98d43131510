#include "source/describe.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "source/warnings.h"

namespace foreload {

std::uint64_t Source::validators() const {
  Hasher hash;
  for (SampleId id = 0; id < size(); ++id) {
    const FileStamp stamp = locate(id).stamp;
    hash.add(stamp.size).add(static_cast<std::uint64_t>(stamp.mtime_ns));
  }
  return hash.value();
}

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
