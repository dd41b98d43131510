// Listings have no folders: the first key behind all that begin with "name/" begins the next name. One request each.
#include "source/remote_beside.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "source/remote_list.h"
#include "source/warnings.h"
#include "store/s3_store.h"

namespace foreload {
namespace {

constexpr std::size_t kMostNames = 6;
constexpr int kMostRequests = 12;
constexpr int kMostLevels = 4;
constexpr const char* kLastCharacter = "\xf4\x8f\xbf\xbf";  // of all that UTF-8 can write

// The first key in the range.
std::optional<std::string> first_key(const S3Store& store, HttpClient& client, const KeyRange& range) {
  std::optional<std::string> key;
  (void)list_objects(store, client, range, [&](ListedObject object) -> Status {
    key = std::move(object.key);
    return Error{Code::kCancelled, "one is enough"};
  });
  return key;
}

// Behind all names that begin as this one does, up to its first digit: of numbered ones the first is enough.
std::string behind(const std::string& name) {
  const std::size_t number = name.find_first_of("0123456789");
  const bool is_numbered = number != std::string::npos && number > 0;
  if (!is_numbered && name.back() != '/') return name;
  return name.substr(0, is_numbered ? number : name.size()) + kLastCharacter;
}

std::vector<std::string> names_in(const S3Store& store) {
  HttpClient client;
  std::vector<std::string> names;
  KeyRange range;
  for (int request = 0; request < kMostRequests && names.size() <= kMostNames; ++request) {
    const auto key = first_key(store, client, range);
    if (!key || key->empty()) break;
    std::string name = key->substr(0, key->find('/'));
    if (name.size() < key->size()) name += '/';
    range.after = behind(name);
    if (name.front() != '.') names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::string what_is_beside(const Url& folder) {
  Url around = folder;
  for (int level = 0; level < kMostLevels; ++level) {
    const auto place = open_remote_place(around);
    const auto* store = place.ok() ? dynamic_cast<const S3Store*>(place->store.get()) : nullptr;
    if (store == nullptr) return {};
    std::vector<std::string> names = names_in(*store);
    if (!names.empty()) {
      if (names.size() > kMostNames) names.back() = "…";
      for (std::string& name : names) name = printable(name);
      return fmt::format("; {} has {}", printable(around.text()), fmt::join(names, ", "));
    }
    if (around.path.empty()) return {};
    around.path.pop_back();
    around.path.resize(around.path.rfind('/') + 1);
  }
  return {};
}

}  // namespace foreload
