#include "source/index_cache.h"

#include <fmt/core.h>
#include <malloc.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/machine.h"
#include "base/write_file.h"
#include "source/index_changes.h"
#include "source/payload.h"
#include "source/warnings.h"

namespace foreload {

namespace {

constexpr std::size_t kLongestNote = 1000;

struct Candidate {
  std::string folder;
  std::string path;
  bool may_create_folder = false;
};

std::string real_path(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

// In a folder that many datasets share, the name tells them apart by where they are.
Candidate shared_candidate(const Place& place, const std::string& folder) {
  const std::uint64_t hash =
      Hasher().add(place.identity).add(place.store ? place.folder : real_path(place.index_folder)).value();
  return {folder, fmt::format("{}/index-{}", folder, hex16(hash)), true};
}

std::string user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    return std::string(cache) + "/foreload";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return std::string(home) + "/.cache/foreload";
  }
  return {};
}

std::vector<Candidate> candidates(const Place& place, const SourceOptions& options) {
  if (!options.index_folder.empty()) return {shared_candidate(place, options.index_folder)};
  // The name does not depend on the path, so that the index stays valid when the dataset is moved.
  const std::string name = ".foreload-index-" + hex16(Hasher().add(place.identity).value());
  std::vector<Candidate> found;
  if (!place.index_folder.empty()) {
    found.push_back({place.index_folder, fmt::format("{}/{}", place.index_folder, name), false});
  }
  if (const std::string folder = user_cache_folder(); !folder.empty()) {
    found.push_back(shared_candidate(place, folder));
  }
  return found;
}

Status create_folders(const std::string& path) {
  constexpr mode_t kPrivate = 0700;
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), kPrivate) != 0 && errno != EEXIST) return errno_error("cannot create " + part, errno);
    if (end == std::string::npos) return {};
  }
}

void warn(const SourceOptions& options, const std::string& uri, const std::string& line) {
  if (options.warn) options.warn(fmt::format("{}: {}", printable(uri), printable(line, kLongestNote)));
}

unsigned scan_threads(const SourceOptions& options) {
  return options.threads > 0 ? options.threads : usable_cores();
}

// What the file at a candidate's path holds, if anything.
std::optional<CachedIndex> load(const Candidate& candidate, const std::string& uri, const SourceOptions& options) {
  struct stat status {};
  // A link could lead anywhere; ours never is one.
  if (lstat(candidate.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  auto index = Index::open(candidate.path);
  if (!index.ok()) {
    // A file of another user that can not be read is nothing to complain about.
    if (index.error().code == Code::kInvalid) {
      warn(options, uri, fmt::format("the index file {}: {}; it is built anew", candidate.path, index.error().message));
    }
    return std::nullopt;
  }
  return CachedIndex{std::move(*index), candidate.path};
}

// What the candidates' files hold: an index that fits, and otherwise the newest of those that perhaps do not any more.
struct Known {
  std::optional<CachedIndex> current;
  std::optional<CachedIndex> earlier;
};

Known find_index(const Dataset& dataset, const std::string& uri, const SourceOptions& options) {
  Known known;
  for (const Candidate& candidate : candidates(dataset.place(), options)) {
    std::optional<CachedIndex> found = load(candidate, uri, options);
    if (!found) continue;
    const IndexView& view = found->index.view();
    if (options.trust_index || dataset.is_current(view, candidate.path, scan_threads(options))) {
      known.current = std::move(found);
      return known;
    }
    const bool is_newer = !known.earlier || known.earlier->index.view().scan_time_ns() < view.scan_time_ns();
    if (is_newer) known.earlier = std::move(found);
  }
  return known;
}

void tell_changes(const IndexView& before, const IndexView& after, const std::string& uri,
                  const SourceOptions& options) {
  if (!options.warn || before.kind() != after.kind()) return;
  const IndexChanges changes = compare_indexes(before, after);
  if (changes.any()) warn(options, uri, fmt::format("changed since it was indexed, {}: indexed anew", changes.text()));
}

Result<std::vector<std::byte>> scan(const Dataset& dataset, const std::string& uri, const SourceOptions& options,
                                    const IndexView* before) {
  Warnings warnings;
  ScanProgress progress;
  ScanContext context{scan_threads(options), warnings, progress, before};
  std::optional<Result<std::vector<std::byte>>> content;
  run_reporting(progress, options.progress, [&] { content.emplace(dataset.scan(context)); });
  if (!content->ok()) {
    for (const std::string& line : warnings.lines()) warn(options, uri, line);
  }
  return *std::move(content);
}

// A scan frees many small pieces, which the allocator would keep: for a million samples as much as the index itself.
void give_back_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

// Maps what was written, so that the pages are shared with other processes.
CachedIndex keep(const Dataset& dataset, Index built, std::span<const std::byte> content, const std::string& uri,
                 const SourceOptions& options) {
  if (!options.keep_index) return {std::move(built), ""};
  std::string reason = "no folder for it is known";
  for (const Candidate& candidate : candidates(dataset.place(), options)) {
    Status status = candidate.may_create_folder ? create_folders(candidate.folder) : Status();
    if (status.ok()) status = save_index(dataset, candidate.path, content, built.view());
    if (!status.ok()) {
      reason = status.error().message;
      continue;
    }
    auto mapped = Index::open(candidate.path);
    // Someone else may have replaced the file by an index of something newer: then ours stays in memory.
    if (mapped.ok() && mapped->view().fingerprint() == built.view().fingerprint()) built = std::move(*mapped);
    return {std::move(built), candidate.path};
  }
  warn(options, uri,
       fmt::format("the index can not be kept and will be built again next time: {}; name a writable "
                   "index folder",
                   reason));
  return {std::move(built), ""};
}

}  // namespace

Status Dataset::save_index(const std::string& index_path, std::span<const std::byte> content, const IndexView&) const {
  remove_leftovers(index_path);
  return replace_file(index_path, content);
}

Status save_index(const Dataset& dataset, const std::string& path, std::span<const std::byte> content,
                  const IndexView& index) {
  constexpr mode_t kAnyWrite = 0222;
  const std::string folder(directory_name(path));
  struct stat status {};
  // Root could write all the same; but whoever took away every write bit meant it.
  if (stat(folder.c_str(), &status) == 0 && (status.st_mode & kAnyWrite) == 0) {
    return Error{Code::kIo, fmt::format("the folder {} is marked read-only", folder)};
  }
  return dataset.save_index(path, content, index);
}

Result<CachedIndex> open_index(const Dataset& dataset, const std::string& uri, const SourceOptions& options) {
  Known known = options.rebuild_index ? Known{} : find_index(dataset, uri, options);
  std::optional<CachedIndex> found = std::move(known.current);
  if (!found) {
    const IndexView* before = known.earlier ? &known.earlier->index.view() : nullptr;
    FORELOAD_ASSIGN(std::vector<std::byte> content, scan(dataset, uri, options, before));
    const std::span<const std::byte> bytes = content;  // stays valid: the vector is moved, not copied
    FORELOAD_ASSIGN(Index built, Index::from_bytes(std::move(content)));
    if (before != nullptr && dataset.is_confirmed(*before, built.view())) {
      found = std::move(known.earlier);
    } else {
      if (before != nullptr) tell_changes(*before, built.view(), uri, options);
      found = keep(dataset, std::move(built), bytes, uri, options);
    }
    give_back_memory();
  }
  for (const std::string& line : found->index.view().notes()) warn(options, uri, line);
  return *std::move(found);
}

}  // namespace foreload
