#include "probe/doctor_place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace foreload {

namespace {

constexpr std::pair<std::uint64_t, FileSystem> kFileSystems[] = {
    {0xef53, {"ext4", PlaceKind::kLocal}},        {0x58465342, {"xfs", PlaceKind::kLocal}},
    {0x9123683e, {"btrfs", PlaceKind::kLocal}},   {0x2fc12fc1, {"zfs", PlaceKind::kLocal}},
    {0xf2f52010, {"f2fs", PlaceKind::kLocal}},    {0x73717368, {"squashfs", PlaceKind::kLocal}},
    {0xe0f5e1e2, {"erofs", PlaceKind::kLocal}},   {0x01021994, {"tmpfs", PlaceKind::kMemory}},
    {0x858458f6, {"ramfs", PlaceKind::kMemory}},  {0x794c7630, {"overlay", PlaceKind::kOverlay}},
    {0x6969, {"nfs", PlaceKind::kNetwork}},       {0xff534d42, {"cifs", PlaceKind::kNetwork}},
    {0xfe534d42, {"smb", PlaceKind::kNetwork}},   {0x0bd00bd0, {"lustre", PlaceKind::kNetwork}},
    {0x00c36400, {"ceph", PlaceKind::kNetwork}},  {0x01021997, {"9p", PlaceKind::kNetwork}},
    {0x47504653, {"gpfs", PlaceKind::kNetwork}},  {0x19830326, {"beegfs", PlaceKind::kNetwork}},
    {0x65735546, {"fuse", PlaceKind::kNetwork}},  {0x5346414f, {"afs", PlaceKind::kNetwork}},
    {0x786f4256, {"vboxsf", PlaceKind::kNetwork}}};

PlaceView view_of(const struct statfs& status, const std::string& path) {
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  const FileSystem known = file_system_of(magic);
  PlaceView view{.path = path, .file_system = known.name, .kind = known.kind};
  if (known.kind == PlaceKind::kUnknown) view.file_system = fmt::format("of type 0x{:x}", magic);
  view.size = Bytes{status.f_blocks} * static_cast<Bytes>(status.f_bsize);
  view.free = Bytes{status.f_bavail} * static_cast<Bytes>(status.f_bsize);
  return view;
}

std::string share_text(Bytes part, Bytes whole) {
  return fmt::format("{:.0f} %", 100 * static_cast<double>(part) / static_cast<double>(std::max<Bytes>(whole, 1)));
}

}  // namespace

FileSystem file_system_of(std::uint64_t magic) {
  const auto* const found = std::ranges::find(kFileSystems, magic, &std::pair<std::uint64_t, FileSystem>::first);
  return found != std::end(kFileSystems) ? found->second : FileSystem{"unknown", PlaceKind::kUnknown};
}

Result<PlaceView> look_at_place(const std::string& path) {
  struct statfs status {};
  struct stat node {};
  if (statfs(path.c_str(), &status) != 0 || stat(path.c_str(), &node) != 0) {
    return errno_error("cannot examine " + path, errno);
  }
  PlaceView view = view_of(status, path);
  view.is_folder = S_ISDIR(node.st_mode);
  // Whoever took away every write bit meant it, also for root.
  view.may_write = access(path.c_str(), W_OK) == 0 && (node.st_mode & 0222) != 0;
  return view;
}

Result<PlaceView> look_at_place(int folder, const std::string& path) {
  struct statfs status {};
  struct stat node {};
  if (fstatfs(folder, &status) != 0 || fstat(folder, &node) != 0) return errno_error("cannot examine " + path, errno);
  PlaceView view = view_of(status, path);
  view.may_write = faccessat(folder, ".", W_OK, 0) == 0 && (node.st_mode & 0222) != 0;
  return view;
}

Finding judge_dataset_place(const PlaceView& place, const DatasetShape& shape) {
  const std::string found = fmt::format("the dataset is on {}", place.file_system);
  const std::string convert = fmt::format("foreload convert {} DST", place.path);
  switch (place.kind) {
    case PlaceKind::kNetwork:
      if (!shape.in_shards) {
        return {Severity::kCosts, "storage", found + ", perhaps across a network, in single files",
                fmt::format("each of {} samples is looked up, opened and read there one by one",
                            format_count(shape.samples)),
                convert + " makes large files of it; --disk DIR keeps samples on a local disk"};
      }
      return {Severity::kNote, "storage", found + ", perhaps across a network", "its rate is shared with others",
              "--disk DIR keeps samples on a local disk"};
    case PlaceKind::kMemory:
      return {Severity::kNote, "storage", found,
              fmt::format("its {} are memory that is lacking elsewhere; caching it again gains nothing",
                          format_bytes(shape.bytes)),
              "a disk; or --no-cache here"};
    case PlaceKind::kOverlay:
      return {Severity::kNote, "storage", found + ", the layers of a container",
              "reading through layers is slower than a volume, and a copy per container",
              "mount the dataset as a volume"};
    default:
      return {Severity::kOk, "storage", found};
  }
}

Finding judge_disk_cache(const PlaceView& place, const DatasetShape& shape) {
  const std::string found =
      fmt::format("{} is on {}, {} free", place.path, place.file_system, format_bytes(place.free));
  if (!place.is_folder) {
    return {Severity::kBreaks, "disk cache", place.path + " is not a folder", "the run refuses it", "name a folder"};
  }
  if (!place.may_write) {
    return {Severity::kCosts, "disk cache", place.path + " can not be written to", "nothing is kept on disk",
            "name a folder that belongs to you"};
  }
  if (place.kind == PlaceKind::kNetwork) {
    return {Severity::kCosts, "disk cache", found, "the cache is behind a network itself",
            "name a folder on a local disk"};
  }
  if (place.kind == PlaceKind::kMemory) {
    return {Severity::kCosts, "disk cache", found, "what is kept there takes memory, which --memory uses better",
            "name a folder on a local disk"};
  }
  const Bytes usable = place.free / 10 * 9;
  if (usable < shape.bytes) {
    return {Severity::kCosts, "disk cache", found,
            fmt::format("it holds {} of the dataset ({})", share_text(usable, shape.bytes), format_bytes(shape.bytes)),
            "free some space, or name a larger disk"};
  }
  return {Severity::kOk, "disk cache", found};
}

Finding judge_index_place(bool beside, bool user_cache, const std::string& user_folder) {
  if (beside) return {Severity::kOk, "index", "is kept beside the dataset"};
  if (user_cache) return {Severity::kOk, "index", "is kept in " + user_folder};
  return {Severity::kCosts, "index",
          user_folder.empty() ? "can not be kept: neither beside the dataset, nor is HOME or XDG_CACHE_HOME set"
                              : fmt::format("can not be kept beside the dataset or in {}", user_folder),
          "every start lists and examines the whole dataset", "--index-folder DIR, on a disk that can be written to"};
}

}  // namespace foreload
