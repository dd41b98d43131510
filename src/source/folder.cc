// A folder of files, read as torchvision's ImageFolder does: classes are the top-level folders in byte order, the label
// is the rank; inside a class, folders in the order of their paths, inside a folder files in byte order. A folder
// without class folders is flat: no labels.
//
// An index is current while no directory has another mtime than when it was listed. Two traps:
// - A change within the same tick of the file system's clock leaves the mtime as it was. So the time of the scan is
//   kept, and directories that were changed just before it are listed again and compared by the sum of their names.
// - Writing the index into the root changes the root's mtime. So after writing, the index file gets the root's new
//   mtime as its own: equal means that nothing came after it. If not, the names decide, unless samples lie in the root.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/open_below.h"
#include "base/text.h"
#include "base/thread.h"
#include "source/dataset.h"
#include "source/directory.h"
#include "source/folder_index.h"
#include "source/folder_scan.h"
#include "source/payload.h"

namespace foreload {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kFineTick = kSecond / 10;      // much longer than any kernel's tick
constexpr std::int64_t kCoarseTick = 2 * kSecond;     // file systems that keep whole seconds, or pairs of them
constexpr std::chrono::milliseconds kSettleTime(20);  // longer than a tick of fine clocks
constexpr std::uint64_t kDirectoriesPerTask = 256;

bool is_coarse(std::int64_t mtime_ns) {
  return mtime_ns % kSecond == 0;
}

// Whether a directory could have changed after it was listed without showing it.
bool is_doubtful(std::int64_t mtime_ns, std::int64_t scan_time_ns) {
  return mtime_ns + (is_coarse(mtime_ns) ? kCoarseTick : kFineTick) >= scan_time_ns;
}

std::optional<std::int64_t> mtime_at(int directory, const std::string& path) {
  struct stat status {};
  if (fstatat(directory, path.empty() ? "." : path.c_str(), &status, 0) != 0) return std::nullopt;
  return stamp_from(status).mtime_ns;
}

class FolderDataset final : public Dataset {
 public:
  explicit FolderDataset(Place place) : place_(std::move(place)) {}

  const Place& place() const override { return place_; }
  Result<std::vector<std::byte>> scan(ScanContext& context) const override;
  bool is_current(const IndexView& index, const std::string& index_path, unsigned threads) const override;
  Status save_index(const std::string& index_path, std::span<const std::byte> content,
                    const IndexView& index) const override;

 private:
  bool is_inside(const std::string& index_path) const;
  bool is_root_current(const IndexView& index, const std::string& index_path) const;
  bool is_directory_current(const IndexView& index, std::uint64_t directory) const;
  bool has_same_names(const IndexView& index, std::uint64_t directory) const;
  Error nothing_found(const Warnings& warnings) const;

  const Place place_;
};

Error FolderDataset::nothing_found(const Warnings& warnings) const {
  const std::uint64_t outside = warnings.count(Cause::kLinkOutside);
  std::string why = fmt::format("the folder {} holds no samples: looked for {}", place_.folder, payload_extensions());
  if (const std::uint64_t ignored = warnings.count(Cause::kOtherExtension); ignored > 0) {
    why += fmt::format("; {} with other extensions {} ignored (tar shards are named as '{}/*.tar')",
                       counted(ignored, "file"), ignored == 1 ? "was" : "were", place_.folder);
  }
  if (outside > 0) {
    why +=
        fmt::format("; {} refused for leading outside of it: open the folder that is linked", counted(outside, "link"));
  }
  return {Code::kNotFound, why};
}

Result<std::vector<std::byte>> FolderDataset::scan(ScanContext& context) const {
  const std::int64_t scan_time_ns = wall_clock_ns();
  FORELOAD_ASSIGN(FolderScan found, scan_folder(place_.root.get(), place_.folder, context));
  auto content = index_of_folder(std::move(found), scan_time_ns, context.warnings);
  if (!content) return nothing_found(context.warnings);
  return *std::move(content);
}

// Compares what the paths lead to: they may be written in several ways.
bool FolderDataset::is_inside(const std::string& index_path) const {
  const std::string folder(directory_name(index_path));
  struct stat root {};
  struct stat around {};
  if (fstat(place_.root.get(), &root) != 0 || stat(folder.empty() ? "." : folder.c_str(), &around) != 0) return false;
  return root.st_dev == around.st_dev && root.st_ino == around.st_ino;
}

bool FolderDataset::has_same_names(const IndexView& index, std::uint64_t directory) const {
  const auto facts = examine_directory(place_.root.get(), index.directory(directory));
  return facts.ok() && facts->listing == index.directory_listing(directory);
}

bool FolderDataset::is_directory_current(const IndexView& index, std::uint64_t directory) const {
  const std::int64_t known = index.directory_mtime_ns(directory);
  if (mtime_at(place_.root.get(), index.directory(directory)) != known) return false;
  return !is_doubtful(known, index.scan_time_ns()) || has_same_names(index, directory);
}

bool FolderDataset::is_root_current(const IndexView& index, const std::string& index_path) const {
  if (!is_inside(index_path) && is_directory_current(index, 0)) return true;
  const auto mtime = mtime_at(place_.root.get(), "");
  const bool is_sealed = is_inside(index_path) && mtime && mtime == mtime_at(AT_FDCWD, index_path);
  if (is_sealed && !is_coarse(*mtime)) return true;
  if (!is_sealed && index.has_samples_in(0)) return false;
  return has_same_names(index, 0);
}

bool FolderDataset::is_current(const IndexView& index, const std::string& index_path, unsigned threads) const {
  if (index.kind() != IndexKind::kFolder || index.directories() == 0 || !index.directory(0).empty()) return false;
  if (!is_root_current(index, index_path)) return false;
  std::atomic<bool> all_current{true};
  const std::uint64_t tasks = (index.directories() + kDirectoriesPerTask - 1) / kDirectoriesPerTask;
  parallel_for(threads, tasks, [&](std::uint64_t task) {
    const std::uint64_t end = std::min((task + 1) * kDirectoriesPerTask, index.directories());
    for (std::uint64_t i = std::max<std::uint64_t>(1, task * kDirectoriesPerTask); i < end && all_current; ++i) {
      if (!is_directory_current(index, i)) all_current = false;
    }
  });
  return all_current;
}

Status FolderDataset::save_index(const std::string& index_path, std::span<const std::byte> content,
                                 const IndexView& index) const {
  if (!is_inside(index_path)) return Dataset::save_index(index_path, content, index);
  const auto before = mtime_at(place_.root.get(), "");
  const bool is_known = before && (before == index.directory_mtime_ns(0) || before == mtime_at(AT_FDCWD, index_path));
  FORELOAD_TRY(Dataset::save_index(index_path, content, index));
  if (!is_known) return {};
  const auto after = mtime_at(place_.root.get(), "");
  // Whatever changes the root from now on gets a later mtime; what changed it meanwhile shows in the names.
  std::this_thread::sleep_for(kSettleTime);
  if (!after || !has_same_names(index, 0) || mtime_at(place_.root.get(), "") != after) return {};
  const timespec seal[2] = {{0, UTIME_OMIT}, {*after / kSecond, *after % kSecond}};
  // Without the seal the next open looks at the names: slower, not wrong.
  if (utimensat(AT_FDCWD, index_path.c_str(), seal, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return {};
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_folder(const std::string& path, const SourceOptions&) {
  Place place;
  FORELOAD_ASSIGN(place.root, open_directory(path));
  place.folder = path;
  while (place.folder.size() > 1 && place.folder.back() == '/') place.folder.pop_back();
  place.index_folder = place.folder;
  place.identity = "folder";
  return std::unique_ptr<Dataset>(std::make_unique<FolderDataset>(std::move(place)));
}

}  // namespace foreload
