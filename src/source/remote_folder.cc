// The objects below a prefix of a bucket as a folder of files: one listing tells names, sizes and ETags, so indexing
// needs no other request. An index is current while a new listing says the same: there is no other way to know, so an
// open lists once, and builds its index from that listing if it says something else.
//
// The keys of an earlier index divide the listing in parts which are asked for together. That needs a server that lists
// in byte order. Parts are believed if each is in order and ends with the very key behind which the next one begins:
// then nothing lies between them. Otherwise the server has another order, or one of those few objects is gone: listed
// again from front to back.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/thread.h"
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

using Listing = std::vector<ListedObject>;
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
  bool is_current(const IndexView&, const std::string&, unsigned) const override { return false; }
  bool is_confirmed(const IndexView& before, const IndexView& now) const override { return are_same(before, now); }

 private:
  Result<Listing> list(HttpClient& client, const KeyRange& range) const;
  std::optional<Listing> list_parts(HttpClient& client, const IndexView& before) const;
  Result<Listing> list_all(const IndexView* before) const;

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

bool is_complete(const KeyRange& part, const Listing& objects) {
  const bool is_ended = part.until.empty() || (!objects.empty() && objects.back().key == part.until);
  return is_ended && std::is_sorted(objects.begin(), objects.end(),
                                    [](const ListedObject& a, const ListedObject& b) { return a.key < b.key; });
}

Result<Listing> ObjectsDataset::list(HttpClient& client, const KeyRange& range) const {
  Listing objects;
  const auto& store = static_cast<const S3Store&>(*place_.store);
  FORELOAD_TRY(list_objects(store, client, range, [&](ListedObject object) -> Status {
    objects.push_back(std::move(object));
    return {};
  }));
  return objects;
}

// Nothing: it is not certain that this would be all.
std::optional<Listing> ObjectsDataset::list_parts(HttpClient& client, const IndexView& before) const {
  const std::vector<KeyRange> parts = parts_of(before);
  if (parts.size() < 2) return std::nullopt;
  std::vector<std::optional<Listing>> listed(parts.size());
  parallel_for(static_cast<unsigned>(parts.size()), parts.size(), [&](std::uint64_t i) {
    auto part = list(client, parts[i]);
    if (part.ok() && is_complete(parts[i], *part)) listed[i] = *std::move(part);
  });
  Listing all;
  for (std::optional<Listing>& part : listed) {
    if (!part) return std::nullopt;
    std::move(part->begin(), part->end(), std::back_inserter(all));
    part.reset();
  }
  return all;
}

Result<Listing> ObjectsDataset::list_all(const IndexView* before) const {
  HttpClient client;
  if (before != nullptr && before->kind() == IndexKind::kFolder) {
    if (auto listed = list_parts(client, *before)) return *std::move(listed);
  }
  return list(client, {});
}

Result<std::vector<std::byte>> ObjectsDataset::scan(ScanContext& context) const {
  const std::int64_t scan_time_ns = wall_clock_ns();
  FolderOfObjects found(context);
  {
    FORELOAD_ASSIGN(Listing objects, list_all(context.before));
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
