#include "source/extent_reader.h"

#include <cstring>

#include "store/object_file.h"

namespace foreload {

Status ExtentReader::open(const Extent& extent) {
  if (extent.shared && shard_ == extent.file) return {};
  shard_.reset();
  FORELOAD_ASSIGN(file_, open_below(extent.root, extent.path));
  if (extent.shared) shard_ = extent.file;
  return {};
}

Result<FileStamp> ExtentReader::read_object(const Extent& extent, std::span<std::byte> into) {
  if (into.empty()) return extent.stamp;
  FORELOAD_ASSIGN(ObjectPart part, read_part(*extent.store, client_, extent.path, extent.offset, into.size()));
  // A listing need not tell what the object's own headers do.
  if (extent.stamp.mtime_ns == 0) part.stamp.mtime_ns = 0;
  if (part.bytes.size() != into.size()) return FileStamp{part.stamp.size, -1};
  std::memcpy(into.data(), part.bytes.data(), into.size());
  return part.stamp;
}

Result<FileStamp> ExtentReader::read(const Extent& extent, std::span<std::byte> into) {
  if (extent.store != nullptr) return read_object(extent, into);
  FORELOAD_TRY(open(extent));
  const Status status = read_exactly(file_.get(), extent.offset, into);
  if (!status && status.error().code != Code::kDataChanged) return status.error();
  // After the read, so that a change during it shows, too.
  FORELOAD_ASSIGN(const FileStamp found, stamp_of(file_.get()));
  if (!status && found == extent.stamp) return status.error();
  return found;
}

}  // namespace foreload
