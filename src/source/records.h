// Records: what `foreload convert` leaves in a folder, and how such a folder is told from others.
//   convert.json          written last: how it was made, how many shards there are. Its presence means "complete"
//   shard-000000.tar …    the samples, as WebDataset has them
//   shards.rows           see record_rows.h
//   .foreload-convert/    only while the conversion is not finished
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "source/dataset.h"
#include "source/index_cache.h"
#include "source/record_rows.h"

namespace foreload {

inline constexpr const char* kRecordsManifest = "convert.json";
inline constexpr const char* kRecordsRows = "shards.rows";
inline constexpr const char* kRecordsWork = ".foreload-convert";
inline constexpr std::uint64_t kMaxRecordShards = 1'000'000;  // what the digits of the names hold
inline constexpr Bytes kLongestManifest = 256_MiB;

std::string record_shard_name(std::uint64_t shard);
std::vector<std::string> record_shard_names(std::uint64_t count);

enum class RecordsState { kNone, kUnfinished, kComplete };
// kComplete: there is a manifest, whatever it says. Any folder may have a file of that name: ours has a first shard, or
// says by whom it was made.
RecordsState records_state(const std::string& folder);

// What is to be known about the shards to read them.
struct RecordShards {
  std::uint64_t count = 0;
  std::vector<std::string> classes;
};

struct RecordsManifest {
  struct Bad {
    SampleId id = 0;  // in the source
    std::string key;
    std::string reason;
  };
  std::string plan;  // JSON, as foreload convert made it
  RecordShards shards;
  std::vector<Bytes> shard_bytes;  // of the files
  std::string fingerprint;         // 16 hex digits
  std::uint64_t samples = 0;
  Bytes bytes = 0;
  std::uint64_t rewritten = 0;
  std::uint64_t shrunk = 0;
  std::uint64_t copied = 0;
  std::uint64_t damaged = 0;
  std::vector<Bad> bad;
};
// kInvalid names what is wrong with it. The text is untrusted.
Result<RecordsManifest> read_manifest(const std::string& folder);

// `path`: what messages call it.
Result<RecordsManifest> parse_manifest(const std::string& text, const std::string& path);
bool says_made_by_convert(std::string_view manifest);  // also from its first 200 bytes

// `shards`, judged by what the manifest says about them.
std::unique_ptr<Dataset> make_records(std::unique_ptr<Dataset> shards, RecordsManifest manifest);

// The shards of a folder without a look at its manifest.
Result<std::unique_ptr<Dataset>> open_record_shards(const std::string& folder, const RecordShards& shards);
// A complete conversion. kDataChanged: the shards are not those that were written, as far as their lengths and the
// names, lengths and labels of their samples tell. Its labels come from "key.cls" whatever the options say.
Result<std::unique_ptr<Dataset>> open_records(const std::string& folder, const SourceOptions& options);

// The same behind a URL that ends with a slash, or would.
Result<std::unique_ptr<Dataset>> open_remote_records(const std::string& url, const SourceOptions& options);
// Whether there is a manifest of ours. An error: the store can not be asked at all.
Result<bool> are_remote_records(const std::string& url);
// The row offsets of remote records: a copy beside the index file is used, or made if `keep`.
Result<RecordRows> open_remote_rows(const Place& place, const CachedIndex& index, bool keep);

}  // namespace foreload
