#include "record/convert_plan.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/open_below.h"
#include "base/text.h"
#include "prep/jpeg_rewrite.h"
#include "source/name_table.h"
#include "source/payload.h"
#include "source/records.h"
#include "source/tar_writer.h"
#include "source/warnings.h"

namespace foreload {

namespace {

// Grows by one whenever the same source and options yield other bytes than before.
constexpr unsigned kConvertVersion = 2;
constexpr Bytes kLabelMemberBytes = 2 * kTarBlockBytes;

Status check_options(const ConvertOptions& options) {
  if (options.shard_bytes == 0) {
    return Error{Code::kInvalid, "a shard size of 0 has room for nothing: give a size such as 256MiB"};
  }
  if (options.quality < 1 || options.quality > 100) {
    return Error{Code::kInvalid, fmt::format("a quality of {} does not exist: choose 1 … 100", options.quality)};
  }
  if (options.keep_original && options.max_side > 0) {
    return Error{Code::kInvalid, "keeping the originals and shrinking them exclude each other: choose one"};
  }
  return {};
}

// Size and time of every file, as the index has them: a source that changes between two calls is another one.
std::uint64_t stamps_of(const Source& source) {
  Hasher hasher;
  std::uint64_t last_file = 0;
  for (SampleId id = 0; id < source.size(); ++id) {
    const Extent extent = source.locate(id);
    if (id > 0 && extent.shared && extent.file == last_file) continue;
    last_file = extent.file;
    hasher.add(extent.stamp.size).add(static_cast<std::uint64_t>(extent.stamp.mtime_ns));
  }
  return hasher.value();
}

std::string text_of(const Source& source, const ConvertOptions& options) {
  nlohmann::ordered_json json;
  json["version"] = kConvertVersion;
  json["source"] = {{"fingerprint", hex16(source.fingerprint())}, {"files", hex16(stamps_of(source))}};
  json["shard_size"] = options.shard_bytes;
  json["shuffle"] = nullptr;
  if (options.shuffle_seed) json["shuffle"] = *options.shuffle_seed;
  json["keep_original"] = options.keep_original;
  json["max_side"] = nullptr;
  json["quality"] = nullptr;
  if (options.max_side > 0) json["max_side"] = options.max_side;
  if (options.max_side > 0) json["quality"] = options.quality;
  return json.dump();  // what becomes of bad samples changes no byte that is written, so another answer may continue
}

std::string stem_of(const std::string& key) {
  return key.substr(0, key.find('.', key.rfind('/') + 1));
}

}  // namespace

ConvertPlan::ConvertPlan(const Source& source, const ConvertOptions& options)
    : source_(&source),
      schedule_({source.size(), options.shuffle_seed.value_or(0), options.shuffle_seed.has_value()}),
      text_(text_of(source, options)) {}

Result<ConvertPlan> ConvertPlan::make(const Source& source, const ConvertOptions& options) {
  FORELOAD_TRY(check_options(options));
  ConvertPlan plan(source, options);
  Bytes size = 0;
  for (std::uint64_t place = 0; place < source.size(); ++place) {
    const Bytes length = source.length(plan.sample_at(place));
    const Bytes taken = kLabelMemberBytes + kTarBlockBytes + tar_padded(length);
    if (size > 0 && size + taken > options.shard_bytes) {
      plan.starts_.push_back(place);
      size = 0;
    }
    size += taken;
  }
  plan.starts_.push_back(source.size());
  if (plan.shards() > kMaxRecordShards) {
    return Error{
        Code::kInvalid,
        fmt::format("shards of {} would be {} files, at most {} are possible: choose a larger shard size",
                    format_bytes(options.shard_bytes), format_count(plan.shards()), format_count(kMaxRecordShards))};
  }
  return plan;
}

Result<RecordNames::Pair> RecordNames::next(const std::string& key, bool as_jpeg) {
  const std::string stem = stem_of(key);
  std::string written = stem;
  if (!written_.insert(written).second) {
    std::uint64_t& number = numbers_[stem];
    do {
      written = fmt::format("{}~{}", stem, ++number);
    } while (!written_.insert(written).second);
  }
  std::string extension = key.substr(stem.size());
  if (as_jpeg) extension = extension.substr(0, extension.rfind('.')) + ".jpg";
  Pair names{written + extension, written + ".cls"};
  if (!is_plain_relative(names.payload) || base_name(names.payload).front() == '.' ||
      names.payload.size() >= kMaxNameLength) {
    return Error{Code::kInvalid, fmt::format("the sample {} can not be a member of a tar: its name is too long or not "
                                             "plain. Rename it",
                                             printable(key))};
  }
  return names;
}

}  // namespace foreload
