#include "source/remote_list.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "base/open_below.h"
#include "source/remote_beside.h"
#include "source/tar_list.h"
#include "store/s3_store.h"
#include "store/web_store.h"

namespace foreload {

namespace {

constexpr std::string_view kSpecial = "{*?[";
constexpr std::string_view kGlob = "*?[";

// Where the path begins: behind the slash that ends the host or bucket.
std::size_t path_start(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t slash = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  return slash == std::string::npos ? url.size() : slash + 1;
}

Status add_matches(const Place& place, const std::string& pattern, std::vector<std::string>& shards) {
  const auto* store = dynamic_cast<const S3Store*>(place.store.get());
  if (store == nullptr) {
    return Error{Code::kInvalid,
                 fmt::format("{}: a web server can not be listed, so * ? [ mean nothing there; write the shards as "
                             "train-{{000..009}}.tar",
                             printable(place.display(pattern)))};
  }
  HttpClient client;
  std::vector<std::string> matches;
  const KeyRange range{.prefix = pattern.substr(0, pattern.find_first_of(kGlob))};
  FORELOAD_TRY(list_objects(*store, client, range, [&](ListedObject object) -> Status {
    const bool fits = fnmatch(pattern.c_str(), object.key.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
    if (fits) matches.push_back(std::move(object.key));
    return {};
  }));
  if (matches.empty()) {
    const auto folder = parse_url(place.folder + "/");
    return Error{Code::kNotFound, fmt::format("no object matches {}{}", printable(place.display(pattern)),
                                              folder.ok() ? what_is_beside(*folder) : "")};
  }
  std::sort(matches.begin(), matches.end());
  std::move(matches.begin(), matches.end(), std::back_inserter(shards));
  return {};
}

}  // namespace

Result<Place> open_remote_place(const Url& folder) {
  Place place;
  place.folder = folder.text();
  place.identity = place.folder;
  if (folder.is_s3()) {
    FORELOAD_ASSIGN(S3Access access, find_s3_access(process_environment()));
    FORELOAD_ASSIGN(std::unique_ptr<S3Store> store, S3Store::open(folder, std::move(access)));
    place.identity = fmt::format("{} at {}", place.folder, store->base());
    place.store = std::move(store);
  } else {
    place.store = open_web_store(folder);
  }
  while (place.folder.back() == '/') place.folder.pop_back();
  return place;
}

// In the URL of a web server a ? begins a query, which parse_url() refuses without repeating it: it may be a signature.
std::size_t special_in(const std::string& url) {
  const bool is_s3 = url.compare(0, 5, "s3://") == 0;
  if (!is_s3 && url.find('?') != std::string::npos) return std::string::npos;
  return url.find_first_of(kSpecial, path_start(url));
}

bool is_remote_list(const std::string& url) {
  return special_in(url) != std::string::npos;
}

Result<RemoteList> expand_remote(const std::string& url) {
  const std::size_t special = std::min(special_in(url), url.size());
  const std::size_t name_at = url.rfind('/', special - 1) + 1;
  const std::string folder_text = url.substr(0, std::max(name_at, path_start(url)));
  FORELOAD_ASSIGN(const Url folder, parse_url(folder_text));
  FORELOAD_ASSIGN(Place place, open_remote_place(folder));
  RemoteList list{std::move(place), url.substr(folder_text.size()), {}};
  FORELOAD_ASSIGN(const std::vector<std::string> patterns, expand_braces(list.pattern));
  for (const std::string& pattern : patterns) {
    if (pattern.find_first_of(kGlob) != std::string::npos) {
      FORELOAD_TRY(add_matches(list.place, pattern, list.shards));
      continue;
    }
    FORELOAD_ASSIGN(const Url shard, parse_url(folder_text + pattern));
    list.shards.push_back(shard.path.substr(folder.path.size()));
  }
  for (const std::string& shard : list.shards) {
    if (is_plain_relative(shard) && fault_of_path(shard).empty()) continue;
    return Error{Code::kInvalid, fmt::format("{} of {} is no key of a shard", printable(shard), printable(url))};
  }
  return list;
}

}  // namespace foreload
