#include "source/records.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "source/warnings.h"

namespace foreload {

namespace {

bool exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

Error unusable(const std::string& path, const char* what) {
  return {Code::kInvalid, fmt::format("{} is damaged ({}): convert again into a new folder", printable(path), what)};
}

Result<RecordShards> read_manifest(const std::string& path) {
  FORELOAD_ASSIGN(const std::string text, read_whole_file(path, kLongestManifest));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return unusable(path, "it is no JSON object");
  const auto count = json.find("shards");
  const auto classes = json.find("classes");
  if (count == json.end() || !count->is_array()) return unusable(path, "it has no list of shards");
  RecordShards shards;
  shards.count = count->size();
  if (shards.count == 0 || shards.count > kMaxRecordShards) return unusable(path, "the number of shards");
  if (classes == json.end() || !classes->is_array()) return unusable(path, "it has no list of classes");
  for (const auto& name : *classes) {
    if (!name.is_string() || name.get_ref<const std::string&>().size() > kMaxNameLength) {
      return unusable(path, "a class is no name");
    }
    shards.classes.push_back(name.get<std::string>());
  }
  return shards;
}

}  // namespace

std::string record_shard_name(std::uint64_t shard) {
  return fmt::format("shard-{:06}.tar", shard);
}

RecordsState records_state(const std::string& folder) {
  // Any folder may have a file of that name; ours has shards, too.
  if (exists(fmt::format("{}/{}", folder, kRecordsManifest)) &&
      exists(fmt::format("{}/{}", folder, record_shard_name(0)))) {
    return RecordsState::kComplete;
  }
  return exists(fmt::format("{}/{}", folder, kRecordsWork)) ? RecordsState::kUnfinished : RecordsState::kNone;
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
  FORELOAD_ASSIGN(const RecordShards shards, read_manifest(fmt::format("{}/{}", folder, kRecordsManifest)));
  return open_record_shards(folder, shards);
}

}  // namespace foreload
