// What the manifest says is compared with what is there: the lengths of the shards whenever the folder is opened, the
// fingerprint and the number of samples with the index, wherever that comes from. An index that does not fit is not
// used; when a fresh one does not fit either, the shards were changed.
#include "source/records.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "source/warnings.h"

namespace foreload {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepestJson = 16;
constexpr std::string_view kMaker = "foreload convert";
constexpr std::size_t kMakerWithin = 200;  // bytes from the beginning of the manifest

std::string path_of(const std::string& folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

bool exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

Error unusable(const std::string& path, const char* what) {
  return {Code::kInvalid, fmt::format("{} is damaged ({}): convert again into a new folder", printable(path), what)};
}

Error changed(const std::string& what, const std::string& how) {
  return {Code::kDataChanged, fmt::format("{} was changed since it was converted ({}): convert again into a new folder",
                                          printable(what), how)};
}

// The library writes nested values by recursion, so a file made to harm would overflow the stack.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepestJson) return true;
  }
  return false;
}

bool made_by_convert(const std::string& path) {
  const auto text = read_whole_file(path, kLongestManifest);
  return text && says_made_by_convert(*text);
}

// Takes the members out of a JSON object. What is missing or of another type makes it fail.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  const Json& at(const char* name, Json::value_t type) {
    const auto found = json_.is_object() ? json_.find(name) : json_.end();
    if (found != json_.end() && found->type() == type) return *found;
    ok_ = false;
    return nothing_;
  }
  std::uint64_t number(const char* name) {
    const Json& value = at(name, Json::value_t::number_unsigned);
    return ok_ ? value.get<std::uint64_t>() : 0;
  }
  std::string text(const char* name) {
    const Json& value = at(name, Json::value_t::string);
    return ok_ ? value.get<std::string>() : "";
  }
  bool ok() const { return ok_; }

 private:
  const Json& json_;
  const Json nothing_;
  bool ok_ = true;
};

const char* read_shards(const Json& list, RecordsManifest& manifest) {
  manifest.shards.count = list.size();
  if (list.empty() || list.size() > kMaxRecordShards) return "the number of shards";
  std::uint64_t samples = 0;
  for (const Json& entry : list) {
    Fields shard(entry);
    const bool is_next = shard.text("name") == record_shard_name(manifest.shard_bytes.size());
    samples += shard.number("samples");
    manifest.shard_bytes.push_back(shard.number("bytes"));
    if (!shard.ok() || !is_next) return "an entry of its list of shards";
  }
  return samples == manifest.samples ? nullptr : "the shards do not have as many samples as it says";
}

const char* read_classes(const Json& list, RecordsManifest& manifest) {
  for (const Json& name : list) {
    if (!name.is_string() || name.get_ref<const std::string&>().size() > kMaxNameLength) return "a class is no name";
    manifest.shards.classes.push_back(name.get<std::string>());
  }
  return nullptr;
}

const char* read_counts(const Json& json, RecordsManifest& manifest) {
  Fields fields(json);
  manifest.fingerprint = fields.text("fingerprint");
  manifest.samples = fields.number("samples");
  manifest.bytes = fields.number("bytes");
  Fields outcomes(fields.at("outcomes", Json::value_t::object));
  manifest.rewritten = outcomes.number("rewritten");
  manifest.shrunk = outcomes.number("shrunk");
  manifest.copied = outcomes.number("copied");
  manifest.damaged = outcomes.number("damaged");
  for (const Json& entry : fields.at("bad", Json::value_t::array)) {
    Fields bad(entry);
    manifest.bad.push_back({bad.number("id"), bad.text("key"), bad.text("reason")});
    if (!bad.ok()) return "an entry of its list of bad samples";
  }
  return fields.ok() && outcomes.ok() ? nullptr : "a number is missing";
}

// What is wrong, or null.
const char* fill_manifest(const std::string& text, RecordsManifest& manifest) {
  if (is_too_deep(text)) return "it is nested too deep";
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return "it is no JSON object";
  Fields fields(json);
  const Json& plan = fields.at("plan", Json::value_t::object);
  if (!fields.ok()) return "it has no plan";
  const Json& shards = fields.at("shards", Json::value_t::array);
  if (!fields.ok()) return "it has no list of shards";
  const Json& classes = fields.at("classes", Json::value_t::array);
  if (!fields.ok()) return "it has no list of classes";
  manifest.plan = plan.dump(-1, ' ', false, Json::error_handler_t::replace);
  const char* wrong = read_counts(json, manifest);
  if (!wrong) wrong = read_shards(shards, manifest);
  if (!wrong) wrong = read_classes(classes, manifest);
  return wrong;
}

Status check_lengths(const std::string& folder, const RecordsManifest& manifest) {
  for (std::uint64_t i = 0; i < manifest.shards.count; ++i) {
    const std::string path = path_of(folder, record_shard_name(i));
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
      if (errno != ENOENT) return errno_error("cannot examine the shard " + printable(path), errno);
      return Error{Code::kNotFound,
                   fmt::format("the shard {} is missing: convert again into a new folder", printable(path))};
    }
    const auto bytes = static_cast<Bytes>(status.st_size);
    if (bytes == manifest.shard_bytes[i]) continue;
    return changed(path, fmt::format("{} bytes then, {} now", manifest.shard_bytes[i], bytes));
  }
  return {};
}

class RecordsDataset final : public Dataset {
 public:
  RecordsDataset(std::unique_ptr<Dataset> shards, RecordsManifest manifest)
      : shards_(std::move(shards)), manifest_(std::move(manifest)) {}

  const Place& place() const override { return shards_->place(); }
  Result<std::vector<std::byte>> scan(ScanContext& context) const override;
  bool is_current(const IndexView& index, const std::string& path, unsigned threads) const override {
    return fits(index) && shards_->is_current(index, path, threads) && check_shards(index).ok();
  }
  Status save_index(const std::string& path, std::span<const std::byte> content,
                    const IndexView& index) const override {
    return shards_->save_index(path, content, index);
  }

 private:
  bool fits(const IndexView& index) const {
    return index.size() == manifest_.samples && hex16(index.fingerprint()) == manifest_.fingerprint;
  }
  Status check_shards(const IndexView& index) const;

  const std::unique_ptr<Dataset> shards_;
  const RecordsManifest manifest_;
};

Status RecordsDataset::check_shards(const IndexView& index) const {
  for (std::uint64_t i = 0; i < manifest_.shards.count; ++i) {
    const Bytes bytes = index.shard_stamp(i).size;
    if (bytes == manifest_.shard_bytes[i]) continue;
    return changed(place().display(record_shard_name(i)),
                   fmt::format("{} bytes then, {} now", manifest_.shard_bytes[i], bytes));
  }
  return {};
}

Result<std::vector<std::byte>> RecordsDataset::scan(ScanContext& context) const {
  FORELOAD_ASSIGN(std::vector<std::byte> content, shards_->scan(context));
  FORELOAD_ASSIGN(const IndexView index, IndexView::parse(content));
  FORELOAD_TRY(check_shards(index));
  if (fits(index)) return content;
  return changed(place().folder, fmt::format("{} says {} samples with the fingerprint {}, there are {} with {}",
                                             kRecordsManifest, manifest_.samples, printable(manifest_.fingerprint, 16),
                                             index.size(), hex16(index.fingerprint())));
}

}  // namespace

std::string record_shard_name(std::uint64_t shard) {
  return fmt::format("shard-{:06}.tar", shard);
}

std::vector<std::string> record_shard_names(std::uint64_t count) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) names.push_back(record_shard_name(i));
  return names;
}

RecordsState records_state(const std::string& folder) {
  const std::string manifest = path_of(folder, kRecordsManifest);
  if (exists(manifest) && (exists(path_of(folder, record_shard_name(0))) || made_by_convert(manifest))) {
    return RecordsState::kComplete;
  }
  return exists(path_of(folder, kRecordsWork)) ? RecordsState::kUnfinished : RecordsState::kNone;
}

Result<RecordsManifest> read_manifest(const std::string& folder) {
  const std::string path = path_of(folder, kRecordsManifest);
  FORELOAD_ASSIGN(const std::string text, read_whole_file(path, kLongestManifest));
  return parse_manifest(text, path);
}

Result<RecordsManifest> parse_manifest(const std::string& text, const std::string& path) {
  RecordsManifest manifest;
  if (const char* wrong = fill_manifest(text, manifest)) return unusable(path, wrong);
  return manifest;
}

bool says_made_by_convert(std::string_view manifest) {
  return manifest.substr(0, kMakerWithin).find(kMaker) != std::string_view::npos;
}

std::unique_ptr<Dataset> make_records(std::unique_ptr<Dataset> shards, RecordsManifest manifest) {
  return std::make_unique<RecordsDataset>(std::move(shards), std::move(manifest));
}

Result<std::unique_ptr<Dataset>> open_records(const std::string& folder, const SourceOptions&) {
  switch (records_state(folder)) {
    case RecordsState::kNone:
      return Error{Code::kNotFound, fmt::format("{} was not made by foreload convert: it has no {}", printable(folder),
                                                kRecordsManifest)};
    case RecordsState::kUnfinished:
      return Error{Code::kInvalid,
                   fmt::format("the conversion into {} is not finished: run the same foreload convert again",
                               printable(folder))};
    case RecordsState::kComplete:
      break;
  }
  FORELOAD_ASSIGN(RecordsManifest manifest, read_manifest(folder));
  FORELOAD_TRY(check_lengths(folder, manifest));
  FORELOAD_ASSIGN(std::unique_ptr<Dataset> shards, open_record_shards(folder, manifest.shards));
  return make_records(std::move(shards), std::move(manifest));
}

}  // namespace foreload
