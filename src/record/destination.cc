// The work folder is opened once, without following a link, and everything in it is reached from that descriptor. Its
// files are made under names that are free; one that has links elsewhere loses a name, never its content. The plan in
// state.json says that the folder is ours: it is there before anything else, and removed after everything else.
#include "record/destination.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/open_below.h"
#include "base/write_file.h"
#include "source/records.h"
#include "source/tar_list.h"
#include "source/warnings.h"

namespace foreload {

namespace {

// "shuffle: 3, here null" for everything in which two plans differ. REQUIRES: `plan` is ours.
std::string differences(const std::string& found, const std::string& plan) {
  const auto theirs = nlohmann::json::parse(found, nullptr, false);
  const auto ours = nlohmann::json::parse(plan);
  std::string all;
  for (const auto& [name, wanted] : ours.items()) {
    const auto has = theirs.is_object() ? theirs.value(name, nlohmann::json()) : nlohmann::json();
    if (has == wanted) continue;
    const bool is_flat = !wanted.is_object() && !has.is_structured();
    all += all.empty() ? "" : "; ";
    all += is_flat ? fmt::format("{}: it has {}, asked for is {}", name, has.dump(), wanted.dump())
                   : fmt::format("another {}", name);
  }
  return all;
}

namespace fs = std::filesystem;

constexpr const char* kState = "state.json";
constexpr Bytes kLongestState = 64_KiB;
constexpr mode_t kFolderMode = 0777;  // the umask narrows it
constexpr mode_t kFileMode = 0666;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

std::optional<FileId> id_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

// Whether `path`, or a folder around it, is the file `id`. What does not exist yet is judged by what is around it.
bool is_at_or_below(const std::string& path, const FileId& id) {
  std::error_code error;
  fs::path here = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return false;
  for (;; here = here.parent_path()) {  // ends: every round takes one component away
    if (id_of(here.native()) == id) return true;
    if (here == here.parent_path()) return false;
  }
}

// Where the source's files are: the folder itself, or the first tar of a list.
std::string place_of(const std::string& uri) {
  std::string path = uri;
  for (const std::string_view prefix : {"folder:", "tar:", "records:"}) {
    if (path.starts_with(prefix)) path.erase(0, prefix.size());
  }
  if (id_of(path)) return path;
  const auto list = expand_shards(path);
  return list.ok() ? list->folder + "/" + list->shards.front() : path;
}

Error not_empty(const std::string& folder, const std::string& entry) {
  return {Code::kInvalid, fmt::format("{} is not empty and was not begun by foreload convert: it has {}. Name another "
                                      "folder, or remove it",
                                      printable(folder), printable(entry))};
}

// The first entry besides `ours`. Empty: there is none.
Result<std::string> foreign_entry(const std::string& folder, std::string_view ours) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name != ours) return name;
  }
  if (error) return errno_error("cannot list the folder " + folder, error.value());
  return std::string();
}

std::optional<FileId> id_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

// Whether a conversion makes files of this name in its work folder.
bool is_ours(std::string_view name) {
  if (name == kState || name == kRecordsManifest || name == kRecordsRows) return true;
  if (!name.starts_with("shard-")) return false;
  for (const std::string_view end : {".json", ".rows"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  if (!name.ends_with(".tar")) return false;
  name.remove_prefix(std::string_view("shard-").size());
  name.remove_suffix(std::string_view(".tar").size());
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

Status check_link(const std::string& folder) {
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return {};
  return Error{Code::kInvalid, fmt::format("the destination {} is a link that leads nowhere: remove it, or create what "
                                           "it leads to",
                                           printable(folder))};
}

}  // namespace

Status check_destination(const std::string& folder, const std::string& uri) {
  if (folder.empty()) return Error{Code::kInvalid, "the path of the destination is empty"};
  const std::string source = place_of(uri);
  const auto source_id = id_of(source);
  if (source_id && is_at_or_below(folder, *source_id)) {
    return Error{Code::kInvalid, fmt::format("the destination {} lies inside the source {}: name a folder elsewhere",
                                             printable(folder), printable(uri))};
  }
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return check_link(folder);  // whether it can be made is seen later
  if (!S_ISDIR(status.st_mode)) {
    return Error{Code::kInvalid, fmt::format("the destination {} is not a folder: name another", printable(folder))};
  }
  if (source_id && is_at_or_below(source, {status.st_dev, status.st_ino})) {
    return Error{Code::kInvalid, fmt::format("the source {} lies inside the destination {}: name another folder",
                                             printable(uri), printable(folder))};
  }
  constexpr mode_t kAnyWrite = 0222;
  // Root could write all the same; but whoever took away every write bit meant it.
  if ((status.st_mode & kAnyWrite) == 0) {
    return Error{Code::kIo, fmt::format("the destination {} is marked read-only", printable(folder))};
  }
  if (records_state(folder) != RecordsState::kNone) return {};
  FORELOAD_ASSIGN(const std::string foreign, foreign_entry(folder, kRecordsWork));
  return foreign.empty() ? Status() : not_empty(folder, foreign);
}

std::string Destination::work(const std::string& name) const {
  return fmt::format("{}/{}/{}", folder_, kRecordsWork, name);
}

Result<Destination> Destination::claim(const std::string& folder, const std::string& plan) {
  Destination destination(folder);
  while (destination.folder_.size() > 1 && destination.folder_.back() == '/') destination.folder_.pop_back();
  std::error_code error;
  fs::create_directories(destination.folder_, error);
  if (error) return errno_error("cannot create the folder " + printable(folder), error.value());
  FORELOAD_TRY(destination.lock());
  FORELOAD_TRY(destination.check_content(plan));
  return destination;
}

Status Destination::lock() {
  FORELOAD_ASSIGN(directory_, open_directory(folder_));
  if (flock(directory_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return errno_error("cannot lock the folder " + folder_, errno);
  return Error{Code::kInvalid, folder_ + " is being written by another process: wait for it to end"};
}

Status Destination::check_plan(const std::string& found, const std::string& plan) const {
  if (found == plan) return {};
  return Error{
      Code::kInvalid,
      fmt::format("{} holds a conversion of another source or with other options ({}). Name another folder, or "
                  "remove it",
                  printable(folder_), printable(differences(found, plan), 600))};
}

Status Destination::open_work() {
  work_ = Descriptor(open_retrying(directory_.get(), kRecordsWork, kFolderFlags));
  if (work_.valid() || errno == ENOENT) return {};
  if (errno != ENOTDIR && errno != ELOOP) return errno_error("cannot open " + printable(work("")), errno);
  return Error{Code::kInvalid, fmt::format("{}/{} is a link or a file, so it was not made by foreload convert: remove "
                                           "it, or name another folder",
                                           printable(folder_), kRecordsWork)};
}

Result<std::string> Destination::read_state() const {
  FORELOAD_ASSIGN(const Descriptor file, open_below(work_.get(), kState));
  FORELOAD_ASSIGN(const FileStamp stamp, stamp_of(file.get()));
  std::string text(std::min(stamp.size, kLongestState), '\0');
  FORELOAD_TRY(read_exactly(file.get(), 0, std::as_writable_bytes(std::span(text))));
  return text;
}

Status Destination::check_content(const std::string& plan) {
  if (records_state(folder_) == RecordsState::kComplete) {
    FORELOAD_ASSIGN(const RecordsManifest manifest, read_manifest(folder_));
    FORELOAD_TRY(check_plan(manifest.plan, plan));
    is_complete_ = true;
    // Killed at the very end, it left the folder.
    if (!open_work() || !work_.valid()) return {};
    if (const auto state = read_state(); state && *state == plan) return finish();
    unlinkat(directory_.get(), kRecordsWork, AT_REMOVEDIR);  // succeeds only where nothing is inside
    return {};
  }
  FORELOAD_TRY(open_work());
  const auto state = work_.valid() ? read_state() : Error{Code::kNotFound, ""};
  if (!state && state.error().code != Code::kNotFound) return state.error();
  if (state && *state == plan) return sweep();
  const std::string text = state ? *state : "";
  // Killed or without power when it began, it left a part of the plan, and nothing else.
  const bool is_beginning = plan.starts_with(text);
  if (!is_beginning && text.starts_with("{")) return check_plan(text, plan);
  FORELOAD_ASSIGN(const std::string foreign, foreign_entry(folder_, kRecordsWork));
  if (!foreign.empty()) return not_empty(folder_, foreign);
  if (!work_.valid()) return begin(plan);
  FORELOAD_ASSIGN(const std::string inside, foreign_entry(work(""), is_beginning ? kState : ""));
  return inside.empty() ? begin(plan) : not_empty(folder_, fmt::format("{}/{}", kRecordsWork, inside));
}

Status Destination::begin(const std::string& plan) {
  if (!work_.valid()) {
    if (mkdirat(directory_.get(), kRecordsWork, kFolderMode) != 0)
      return errno_error("cannot create " + work(""), errno);
    FORELOAD_TRY(open_work());
    if (!work_.valid()) return errno_error("cannot open " + work(""), ENOENT);
  }
  FORELOAD_TRY(write(kState, bytes_of(plan)));
  if (fsync(work_.get()) != 0) return errno_error("cannot write " + work(""), errno);
  return {};
}

// Removes what a killed process was just writing beside the shards.
Status Destination::sweep() const {
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with(".foreload-index-") && name.ends_with(".tmp")) fs::remove(entry->path(), error);
  }
  if (error) return errno_error("cannot clean the folder " + folder_, error.value());
  return {};
}

Result<Descriptor> Destination::create(const std::string& name) const {
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  remove(name);
  Descriptor file(open_retrying(work_.get(), name.c_str(), kFlags, kFileMode));
  if (!file.valid()) return errno_error("cannot create " + work(name), errno);
  return file;
}

void Destination::remove(const std::string& name) const {
  // What can not be removed is in the way of the next file of that name, and named then.
  unlinkat(work_.get(), name.c_str(), 0);
}

Status Destination::write(const std::string& name, std::span<const std::byte> content) const {
  FORELOAD_ASSIGN(const Descriptor file, create(name));
  FORELOAD_TRY(write_all(file.get(), content, work(name)));
  if (fsync(file.get()) != 0) return errno_error("cannot write " + work(name), errno);
  return {};
}

// REQUIRES: its content is on the disk.
Status Destination::publish(const std::string& name) const {
  if (renameat(work_.get(), name.c_str(), directory_.get(), name.c_str()) != 0) {
    return errno_error("cannot rename " + work(name), errno);
  }
  if (fsync(directory_.get()) != 0) return errno_error("cannot write the folder " + folder_, errno);
  return {};
}

Status Destination::publish(const std::string& name, std::span<const std::byte> content) const {
  FORELOAD_TRY(write(name, content));
  return publish(name);
}

Status Destination::finish() const {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(work(""), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (is_ours(name) && name != kState) names.push_back(name);
  }
  if (error) return errno_error("cannot list " + work(""), error.value());
  for (const std::string& name : names) remove(name);
  remove(kState);
  if (unlinkat(directory_.get(), kRecordsWork, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY || errno == EEXIST) return {};
  return errno_error("cannot remove " + work(""), errno);
}

bool Destination::is_there() const {
  const auto folder = id_of(directory_.get());
  const auto work_folder = id_of(work_.get());
  return folder && work_folder && id_of(folder_) == folder && id_of(work("")) == work_folder;
}

}  // namespace foreload
