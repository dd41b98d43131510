// Records: what `foreload convert` leaves in a folder, and how such a folder is told from others.
//   convert.json          written last: how it was made, how many shards there are. Its presence means "complete"
//   shard-000000.tar …    the samples, as WebDataset has them
//   shards.rows           see record_rows.h
//   .foreload-convert/    only while the conversion is not finished
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "source/dataset.h"

namespace foreload {

inline constexpr const char* kRecordsManifest = "convert.json";
inline constexpr const char* kRecordsRows = "shards.rows";
inline constexpr const char* kRecordsWork = ".foreload-convert";
inline constexpr std::uint64_t kMaxRecordShards = 1'000'000;  // what the digits of the names hold
inline constexpr Bytes kLongestManifest = 256_MiB;

std::string record_shard_name(std::uint64_t shard);

enum class RecordsState { kNone, kUnfinished, kComplete };
RecordsState records_state(const std::string& folder);

// What is to be known about the shards to read them.
struct RecordShards {
  std::uint64_t count = 0;
  std::vector<std::string> classes;
};
// The shards of a folder without a look at its manifest.
Result<std::unique_ptr<Dataset>> open_record_shards(const std::string& folder, const RecordShards& shards);
// A complete conversion. Its labels come from "key.cls" whatever the options say.
Result<std::unique_ptr<Dataset>> open_records(const std::string& folder, const SourceOptions& options);

}  // namespace foreload
