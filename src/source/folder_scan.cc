#include "source/folder_scan.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/files.h"
#include "base/open_below.h"
#include "base/thread.h"
#include "source/payload.h"

namespace foreload {

namespace {

constexpr std::size_t kMaxDepth = 100;
// Links may lead to one folder on many ways; this ends what would not end otherwise.
constexpr std::uint64_t kMaxFolders = std::uint64_t{1} << 22;
constexpr std::size_t kFilesPerTask = 1024;

struct FolderId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FolderId&) const = default;
};

std::string joined(const std::string& folder, std::string_view name) {
  std::string path = folder;
  if (!path.empty()) path += '/';
  return path.append(name);
}

class Walk {
 public:
  Walk(int root, std::string display, ScanContext& context)
      : root_(root), display_(std::move(display)), context_(context) {}

  // One folder without those below it; their names go to `subfolders`, sorted.
  Result<ScannedFolder> list(int directory, const std::string& path, std::vector<std::string>& subfolders);
  // A folder and everything below it.
  Status descend(const std::string& path, std::vector<FolderId>& around, std::vector<ScannedFolder>& found);

 private:
  std::string shown(const std::string& path) const { return path.empty() ? display_ : joined(display_, path); }
  void take_entry(ScannedFolder& folder, std::string_view name, EntryKind kind, std::vector<std::string>& subfolders);
  EntryKind kind_behind_link(const std::string& path);

  const int root_;
  const std::string display_;
  ScanContext& context_;
  std::atomic<std::uint64_t> folders_{0};
};

// kLink: it is of no use and a warning was given.
EntryKind Walk::kind_behind_link(const std::string& path) {
  const int fd = open_below_raw(root_, path.c_str(), kOpenBelowFlags);
  if (fd == -EXDEV) {
    context_.warnings.add(Cause::kLinkOutside, path);
    return EntryKind::kLink;
  }
  if (fd == -EACCES) return is_payload_name(base_name(path)) ? EntryKind::kFile : EntryKind::kDirectory;
  if (fd < 0) {
    context_.warnings.add(fd == -ENXIO ? Cause::kSpecialFile : Cause::kLinkBroken, path);
    return EntryKind::kLink;
  }
  const Descriptor target(fd);
  struct stat status {};
  if (fstat(fd, &status) != 0) return EntryKind::kSpecial;
  if (S_ISDIR(status.st_mode)) return EntryKind::kDirectory;
  return S_ISREG(status.st_mode) ? EntryKind::kFile : EntryKind::kSpecial;
}

void Walk::take_entry(ScannedFolder& folder, std::string_view name, EntryKind kind,
                      std::vector<std::string>& subfolders) {
  const std::string path = joined(folder.path, name);
  if (path.size() >= kMaxNameLength) {  // longer than the kernel takes
    context_.warnings.add(Cause::kNameTooLong, path);
    return;
  }
  if (kind == EntryKind::kLink) kind = kind_behind_link(path);
  if (kind == EntryKind::kDirectory) {
    subfolders.emplace_back(name);
  } else if (kind == EntryKind::kSpecial) {
    context_.warnings.add(Cause::kSpecialFile, path);
  } else if (kind == EntryKind::kFile && is_payload_name(name)) {
    folder.files.add(name);
  } else if (kind == EntryKind::kFile) {
    context_.warnings.add(Cause::kOtherExtension, path);
  }
}

Result<ScannedFolder> Walk::list(int directory, const std::string& path, std::vector<std::string>& subfolders) {
  ScannedFolder folder;
  folder.path = path;
  FORELOAD_ASSIGN(folder.facts, list_directory(directory, shown(path), [&](std::string_view name, EntryKind kind) {
                    take_entry(folder, name, kind, subfolders);
                  }));
  folder.files.sort();
  std::sort(subfolders.begin(), subfolders.end());
  context_.progress.done += folder.files.size();
  return folder;
}

Status Walk::descend(const std::string& path, std::vector<FolderId>& around, std::vector<ScannedFolder>& found) {
  const int fd = open_directory_below(root_, path);
  if (fd == -ENOENT) {
    context_.warnings.add(Cause::kVanished, path);
    return {};
  }
  if (fd < 0) return errno_error("cannot open the folder " + shown(path), -fd);
  Descriptor directory(fd);
  struct stat status {};
  if (fstat(fd, &status) != 0) return errno_error("cannot examine the folder " + shown(path), errno);
  const FolderId id{status.st_dev, status.st_ino};
  const bool is_loop = std::find(around.begin(), around.end(), id) != around.end();
  if (is_loop || around.size() >= kMaxDepth) {
    context_.warnings.add(is_loop ? Cause::kLoop : Cause::kTooDeep, path);
    return {};
  }
  if (folders_.fetch_add(1) >= kMaxFolders) {
    return Error{Code::kInvalid, display_ + " has more than 4,194,304 folders: do links multiply them?"};
  }
  std::vector<std::string> subfolders;
  FORELOAD_ASSIGN(ScannedFolder folder, list(fd, path, subfolders));
  directory = Descriptor();  // not kept open on the way down
  found.push_back(std::move(folder));
  around.push_back(id);
  for (const std::string& name : subfolders) FORELOAD_TRY(descend(joined(path, name), around, found));
  around.pop_back();
  return {};
}

struct StatTask {
  ScannedFolder* folder = nullptr;
  std::size_t first = 0;
};

void ask_for_sizes(int root, const StatTask& task, ScanContext& context) {
  ScannedFolder& folder = *task.folder;
  const std::size_t end = std::min(task.first + kFilesPerTask, folder.files.size());
  const Descriptor directory(open_directory_below(root, folder.path));
  for (std::size_t i = task.first; i < end; ++i) {
    struct stat status {};
    if (directory.valid() && fstatat(directory.get(), folder.files[i], &status, 0) == 0 && S_ISREG(status.st_mode)) {
      const FileStamp stamp = stamp_from(status);
      folder.stats[i] = {stamp.size, stamp.mtime_ns, true};
    } else {
      context.warnings.add(Cause::kVanished, joined(folder.path, folder.files[i]));
    }
  }
  context.progress.done += end - task.first;
}

void ask_for_all_sizes(int root, FolderScan& scan, ScanContext& context) {
  std::vector<StatTask> tasks;
  const auto add_tasks = [&](ScannedFolder& folder) {
    folder.stats.resize(folder.files.size());
    for (std::size_t first = 0; first < folder.files.size(); first += kFilesPerTask) tasks.push_back({&folder, first});
  };
  add_tasks(scan.root);
  for (ScannedClass& each : scan.classes) {
    for (ScannedFolder& folder : each.folders) add_tasks(folder);
  }
  context.progress.total = context.progress.done.exchange(0);
  parallel_for(context.threads, tasks.size(), [&](std::uint64_t i) { ask_for_sizes(root, tasks[i], context); });
}

}  // namespace

void NameList::add(std::string_view name) {
  starts_.push_back(text_.size());
  text_.append(name).push_back('\0');
}

void NameList::sort() {
  const char* const text = text_.data();
  // strcmp compares as unsigned bytes, like std::string.
  std::sort(starts_.begin(), starts_.end(),
            [text](std::size_t a, std::size_t b) { return std::strcmp(text + a, text + b) < 0; });
}

Result<FolderScan> scan_folder(int root, const std::string& display, ScanContext& context) {
  Walk walk(root, display, context);
  FolderScan scan;
  std::vector<std::string> class_names;
  FORELOAD_ASSIGN(scan.root, walk.list(root, "", class_names));
  scan.classes.resize(class_names.size());
  std::vector<Status> results(class_names.size());
  const FolderId root_id{scan.root.facts.device, scan.root.facts.inode};
  parallel_for(context.threads, class_names.size(), [&](std::uint64_t i) {
    ScannedClass& found = scan.classes[i];
    found.name = class_names[i];
    std::vector<FolderId> around{root_id};
    results[i] = walk.descend(found.name, around, found.folders);
    std::sort(found.folders.begin(), found.folders.end(),
              [](const ScannedFolder& a, const ScannedFolder& b) { return a.path < b.path; });
  });
  for (Status& result : results) FORELOAD_TRY(std::move(result));
  // A link back to the root is no class: it was found to be a loop.
  std::erase_if(scan.classes, [](const ScannedClass& each) { return each.folders.empty(); });
  ask_for_all_sizes(root, scan, context);
  return scan;
}

}  // namespace foreload
