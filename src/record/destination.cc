#include "record/destination.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/open_below.h"
#include "base/write_file.h"
#include "source/records.h"
#include "source/tar_list.h"
#include "source/warnings.h"

namespace foreload {

namespace {

namespace fs = std::filesystem;

constexpr const char* kState = "state.json";
constexpr Bytes kLongestState = 64_KiB;
constexpr mode_t kFolderMode = 0777;  // the umask narrows it

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

// The first entry that is not ours. Empty: there is none.
Result<std::string> foreign_entry(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name != kRecordsWork) return name;
  }
  if (error) return errno_error("cannot list the folder " + folder, error.value());
  return std::string();
}

Status sync(const std::string& path, int flags) {
  const Descriptor file(open_retrying(AT_FDCWD, path.c_str(), flags | O_CLOEXEC));
  if (!file.valid()) return errno_error("cannot open " + path, errno);
  if (fsync(file.get()) != 0) return errno_error("cannot write " + path, errno);
  return {};
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
  if (stat(folder.c_str(), &status) != 0) return {};  // whether it can be made is seen later
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
  FORELOAD_ASSIGN(const std::string foreign, foreign_entry(folder));
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
  return Error{Code::kInvalid,
               fmt::format("{} holds a conversion of another source or with other options: it has {}, asked for is {}. "
                           "Name another folder, or remove it",
                           printable(folder_), printable(found, 600), plan)};
}

Status Destination::check_content(const std::string& plan) {
  if (records_state(folder_) == RecordsState::kComplete) {
    FORELOAD_ASSIGN(const std::string text, read_whole_file(path(kRecordsManifest), kLongestManifest));
    const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
    const bool has_plan = json.is_object() && json.contains("plan") && json["plan"].is_object();
    FORELOAD_TRY(
        check_plan(has_plan ? json["plan"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : "", plan));
    is_complete_ = true;
    return finish();
  }
  const auto state = read_whole_file(work(kState), kLongestState);
  if (state) {
    FORELOAD_TRY(check_plan(*state, plan));
    return sweep();
  }
  if (state.error().code != Code::kNotFound) return state.error();
  FORELOAD_ASSIGN(const std::string foreign, foreign_entry(folder_));
  if (!foreign.empty()) return not_empty(folder_, foreign);
  const std::string folder = work("");
  if (mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) return errno_error("cannot create " + folder, errno);
  return replace_file(work(kState), bytes_of(plan));
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

Status Destination::publish(const std::string& name) const {
  FORELOAD_TRY(sync(work(name), O_RDONLY));
  if (rename(work(name).c_str(), path(name).c_str()) != 0) return errno_error("cannot rename " + work(name), errno);
  if (fsync(directory_.get()) != 0) return errno_error("cannot write the folder " + folder_, errno);
  return {};
}

Status Destination::publish(const std::string& name, std::span<const std::byte> content) const {
  FORELOAD_TRY(replace_file(work(name), content));
  return publish(name);
}

Status Destination::finish() const {
  std::error_code error;
  fs::remove_all(fs::path(folder_) / kRecordsWork, error);
  if (error) return errno_error("cannot remove " + work(""), error.value());
  return {};
}

}  // namespace foreload
