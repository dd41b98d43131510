// The objects below a prefix of a bucket as a folder of files: one listing tells names, sizes and ETags, so indexing
// needs no other request. An index is current while a new listing says the same: there is no other way to know. The
// keys of the index divide that listing in parts which are asked for together; a server that does not list in byte
// order gives something else then, and is listed again from front to back.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/thread.h"
#include "base/write_file.h"
#include "source/dataset.h"
#include "source/directory.h"
#include "source/folder_index.h"
#include "source/name_table.h"
#include "source/payload.h"
#include "source/remote_beside.h"
#include "source/remote_list.h"
#include "store/s3_store.h"

namespace foreload {

namespace {

constexpr std::size_t kParts = 16;
constexpr std::uint64_t kPartSamples = 2000;  // at least: two requests

struct Object {
  std::string name;
  FileFacts facts;
};
using Folders = std::map<std::string, std::vector<Object>>;  // by path; "" is the prefix itself

// A path as a file system could have it; others can not be told apart from it, or lead elsewhere.
bool is_plain_key(std::string_view key) {
  if (key.empty() || key.size() >= kMaxNameLength || key.find('\0') != std::string_view::npos) return false;
  while (!key.empty()) {
    const std::size_t end = std::min(key.find('/'), key.size());
    const std::string_view part = key.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return true;
}

class FolderOfObjects {
 public:
  explicit FolderOfObjects(ScanContext& context) : context_(context) { folders_[""]; }

  void take(ListedObject object);
  Result<FolderScan> finish() &&;

 private:
  void add_folders(std::string_view path);

  ScanContext& context_;
  Folders folders_;
};

void FolderOfObjects::add_folders(std::string_view path) {
  while (!path.empty() && folders_.try_emplace(std::string(path)).second) path = directory_name(path);
}

void FolderOfObjects::take(ListedObject object) {
  // Consoles make empty objects "name/" to show folders that have nothing in them yet.
  const bool is_folder = !object.key.empty() && object.key.back() == '/';
  if (is_folder) object.key.pop_back();
  if (is_folder && object.key.empty()) return;  // the prefix itself
  if (!is_plain_key(object.key)) {
    context_.warnings.add(Cause::kObjectName, object.key);
    return;
  }
  if (is_hidden_path(object.key)) return;
  if (is_folder) return add_folders(object.key);
  add_folders(directory_name(object.key));
  if (!is_payload_name(base_name(object.key))) {
    context_.warnings.add(Cause::kOtherExtension, object.key);
    return;
  }
  folders_[std::string(directory_name(object.key))].push_back(
      {std::string(base_name(object.key)), {object.size, validator_of(object.etag), true}});
  ++context_.progress.done;
}

Result<FolderScan> FolderOfObjects::finish() && {
  std::map<std::string, ScannedClass> classes;
  FolderScan scan;
  for (auto& [path, objects] : folders_) {
    std::sort(objects.begin(), objects.end(), [](const Object& a, const Object& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(objects.begin(), objects.end(),
                                          [](const Object& a, const Object& b) { return a.name == b.name; });
    if (twice != objects.end()) {
      return Error{Code::kIo, fmt::format("the listing names the object {}{}{} more than once: the server can not be "
                                          "relied on",
                                          printable(path), path.empty() ? "" : "/", printable(twice->name))};
    }
    ScannedFolder folder;
    folder.path = path;
    for (const Object& object : objects) {
      folder.files.add(object.name);
      folder.stats.push_back(object.facts);
    }
    objects = {};
    if (path.empty()) {
      scan.root = std::move(folder);
      continue;
    }
    ScannedClass& each = classes[path.substr(0, path.find('/'))];
    each.folders.push_back(std::move(folder));
  }
  for (auto& [name, each] : classes) {
    each.name = name;
    scan.classes.push_back(std::move(each));
  }
  return scan;
}

Error nothing_listed(const Place& place) {
  const auto folder = parse_url(place.folder + "/");
  return {Code::kNotFound,
          fmt::format("{} holds no samples: nothing is listed there{} (folders are named as 's3://bucket/folder/', tar "
                      "shards as 's3://bucket/folder/*.tar')",
                      place.folder, folder.ok() ? what_is_beside(*folder) : "")};
}

// Whether both list the same objects with the same stamps.
bool are_same(const IndexView& one, const IndexView& other) {
  if (one.kind() != other.kind() || one.size() != other.size() || one.fingerprint() != other.fingerprint())
    return false;
  for (SampleId id = 0; id < one.size(); ++id) {
    if (one.mtime_ns(id) != other.mtime_ns(id)) return false;
  }
  return true;
}

class ObjectsDataset final : public Dataset {
 public:
  explicit ObjectsDataset(Place place) : place_(std::move(place)) {}

  const Place& place() const override { return place_; }
  Result<std::vector<std::byte>> scan(ScanContext& context) const override;
  bool is_current(const IndexView& index, const std::string& index_path, unsigned threads) const override;
  Status save_index(const std::string& index_path, std::span<const std::byte> content,
                    const IndexView&) const override {
    remove_leftovers(index_path);
    return replace_file(index_path, content);
  }

 private:
  Result<std::vector<ListedObject>> list(HttpClient& client, const KeyRange& range) const;
  Result<std::vector<std::byte>> scan_parts(std::span<const KeyRange> parts, ScanContext& context) const;
  bool lists_the_same(const IndexView& index, std::span<const KeyRange> parts) const;

  const Place place_;
};

// Ranges that together are everything.
std::vector<KeyRange> parts_of(const IndexView& index) {
  const std::uint64_t count = std::min<std::uint64_t>(kParts, index.size() / kPartSamples + 1);
  std::vector<std::string> bounds;
  for (std::uint64_t i = 1; i < count; ++i) bounds.push_back(index.key(i * index.size() / count));
  std::sort(bounds.begin(), bounds.end());
  std::vector<KeyRange> parts(1);
  for (const std::string& bound : bounds) {
    parts.back().until = bound;
    parts.push_back({.after = bound});
  }
  return parts;
}

Result<std::vector<ListedObject>> ObjectsDataset::list(HttpClient& client, const KeyRange& range) const {
  std::vector<ListedObject> objects;
  const auto& store = static_cast<const S3Store&>(*place_.store);
  FORELOAD_TRY(list_objects(store, client, range, [&](ListedObject object) -> Status {
    objects.push_back(std::move(object));
    return {};
  }));
  return objects;
}

Result<std::vector<std::byte>> ObjectsDataset::scan_parts(std::span<const KeyRange> parts, ScanContext& context) const {
  const std::int64_t scan_time_ns = wall_clock_ns();
  HttpClient client;
  std::vector<Result<std::vector<ListedObject>>> listed(parts.size(), std::vector<ListedObject>());
  parallel_for(static_cast<unsigned>(parts.size()), parts.size(),
               [&](std::uint64_t i) { listed[i] = list(client, parts[i]); });
  FolderOfObjects found(context);
  for (auto& part : listed) {
    FORELOAD_ASSIGN(std::vector<ListedObject> objects, std::move(part));
    for (ListedObject& object : objects) found.take(std::move(object));
  }
  FORELOAD_ASSIGN(FolderScan whole, std::move(found).finish());
  auto content = index_of_folder(std::move(whole), scan_time_ns, context.warnings);
  if (content) return *std::move(content);
  if (context.warnings.lines().empty()) return nothing_listed(place_);
  return Error{
      Code::kNotFound,
      fmt::format("{} holds no samples: looked for objects with {}; {} others were ignored (tar shards are "
                  "named as '{}/*.tar')",
                  place_.folder, payload_extensions(), context.warnings.count(Cause::kOtherExtension), place_.folder)};
}

Result<std::vector<std::byte>> ObjectsDataset::scan(ScanContext& context) const {
  const KeyRange everything;
  return scan_parts({&everything, 1}, context);
}

bool ObjectsDataset::lists_the_same(const IndexView& index, std::span<const KeyRange> parts) const {
  Warnings warnings;
  ScanProgress progress;
  ScanContext context{1, warnings, progress};
  const auto content = scan_parts(parts, context);
  if (!content) return false;
  const auto now = IndexView::parse(*content);
  return now.ok() && are_same(index, *now);
}

bool ObjectsDataset::is_current(const IndexView& index, const std::string&, unsigned) const {
  if (index.kind() != IndexKind::kFolder) return false;
  const std::vector<KeyRange> parts = parts_of(index);
  if (lists_the_same(index, parts)) return true;
  // Perhaps the server has another order.
  const KeyRange everything;
  return parts.size() > 1 && lists_the_same(index, {&everything, 1});
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_remote_folder(const std::string& url, const SourceOptions&) {
  FORELOAD_ASSIGN(Url folder, parse_url(url));
  if (!folder.is_s3()) {
    return Error{Code::kInvalid,
                 fmt::format("{}: a web server's folder can not be listed; name tar shards ({}train-{{000..009}}.tar), "
                             "the folder that foreload convert wrote, or use s3://",
                             printable(url), printable(folder.text()))};
  }
  if (!folder.path.empty() && folder.path.back() != '/') folder.path += '/';
  FORELOAD_ASSIGN(Place place, open_remote_place(folder));
  place.identity = "folder " + place.identity;
  return std::unique_ptr<Dataset>(std::make_unique<ObjectsDataset>(std::move(place)));
}

}  // namespace foreload
