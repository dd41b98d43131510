// An account ends with the hash of all that stands before it, seeded with the number of the shard: one that was cut,
// changed or exchanged is not used.
#include "record/shard_account.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/hash.h"
#include "base/open_below.h"
#include "source/records.h"

namespace foreload {

namespace {

using Json = nlohmann::ordered_json;

constexpr Bytes kLongestAccount = 1_GiB;
constexpr std::size_t kReadBytes = 1 << 20;

std::string account_name(std::uint64_t shard) {
  return record_shard_name(shard) + ".json";
}

std::string rows_name(std::uint64_t shard) {
  return record_shard_name(shard) + ".rows";
}

// What closes an account that begins with `text`.
std::string ending_of(std::string_view text, std::uint64_t shard) {
  return fmt::format(",\"xxh3\":\"{}\"}}", hex16(hash_bytes(std::as_bytes(std::span(text)), shard)));
}

bool is_untouched(std::string_view text, std::uint64_t shard) {
  const std::size_t ending = ending_of("", shard).size();
  if (text.size() < ending) return false;
  const std::string_view begin = text.substr(0, text.size() - ending);
  return text.substr(begin.size()) == ending_of(begin, shard);
}

Json to_json(const ShardAccount& account) {
  Json json{{"bytes", account.file_bytes}, {"hash", account.file_hash}, {"outcomes", account.outcomes}};
  json["lengths"] = account.lengths;
  json["widths"] = json["heights"] = json["bad"] = Json::array();
  for (const Dimensions size : account.sizes) {
    json["widths"].push_back(size.width);
    json["heights"].push_back(size.height);
  }
  for (const BadSample& bad : account.bad) json["bad"].push_back({bad.id, bad.key, bad.reason});
  return json;
}

template <typename T>
bool read_numbers(const Json& json, const char* name, std::uint64_t count, std::vector<T>& values) {
  const auto list = json.find(name);
  if (list == json.end() || !list->is_array() || list->size() != count) return false;
  for (const Json& value : *list) {
    if (!value.is_number_unsigned()) return false;
    values.push_back(value.get<T>());
  }
  return true;
}

bool read_bad(const Json& json, std::vector<BadSample>& bad) {
  const auto list = json.find("bad");
  if (list == json.end() || !list->is_array()) return false;
  for (const Json& entry : *list) {
    if (!entry.is_array() || entry.size() != 3 || !entry[0].is_number_unsigned()) return false;
    if (!entry[1].is_string() || !entry[2].is_string()) return false;
    bad.push_back({entry[0].get<SampleId>(), entry[1].get<std::string>(), entry[2].get<std::string>()});
  }
  return true;
}

bool from_json(const Json& json, std::uint64_t samples, ShardAccount& account) {
  if (!json.is_object()) return false;
  const auto bytes = json.find("bytes");
  const auto hash = json.find("hash");
  const auto outcomes = json.find("outcomes");
  if (bytes == json.end() || hash == json.end() || outcomes == json.end()) return false;
  if (!bytes->is_number_unsigned() || !hash->is_number_unsigned() || !outcomes->is_string()) return false;
  account.file_bytes = bytes->get<Bytes>();
  account.file_hash = hash->get<std::uint64_t>();
  account.outcomes = outcomes->get<std::string>();
  if (account.outcomes.size() != samples) return false;
  if (account.outcomes.find_first_not_of(kOutcomes) != std::string::npos) return false;
  std::vector<std::uint32_t> widths, heights;
  if (!read_numbers(json, "lengths", samples, account.lengths) || !read_numbers(json, "widths", samples, widths) ||
      !read_numbers(json, "heights", samples, heights) || !read_bad(json, account.bad)) {
    return false;
  }
  for (std::uint64_t i = 0; i < samples; ++i) account.sizes.push_back({widths[i], heights[i]});
  return true;
}

}  // namespace

Status save_account(const Destination& destination, const ShardAccount& account, std::span<const std::byte> rows) {
  std::string text = to_json(account).dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();  // the closing brace
  text += ending_of(text, account.shard);
  FORELOAD_TRY(destination.write(rows_name(account.shard), rows));
  return destination.write(account_name(account.shard), std::as_bytes(std::span(text)));
}

Result<std::uint64_t> hash_file(int fd, Bytes bytes, const std::function<bool()>& stop) {
  Hasher hasher;
  std::vector<std::byte> block(kReadBytes);
  for (Bytes at = 0; at < bytes; at += block.size()) {
    if (stop && stop()) return Error{Code::kCancelled, "stopped; the same command continues"};
    const auto part = std::span(block).first(std::min<Bytes>(block.size(), bytes - at));
    FORELOAD_TRY(read_exactly(fd, at, part));
    hasher.add_raw(part);
  }
  return hasher.value();
}

Result<ShardAccount> load_account(const Destination& destination, std::uint64_t shard, std::uint64_t samples,
                                  const std::function<bool()>& stop) {
  const Error unusable{Code::kInvalid, "the shard is not finished"};
  const std::string name = record_shard_name(shard);
  const Descriptor file(open_below_raw(destination.directory(), name.c_str(), kOpenBelowFlags | O_NOFOLLOW));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return unusable;
  FORELOAD_ASSIGN(const std::string text, read_whole_file(destination.work(account_name(shard)), kLongestAccount));
  ShardAccount account;
  account.shard = shard;
  if (!is_untouched(text, shard)) return unusable;
  if (!from_json(Json::parse(text, nullptr, false), samples, account)) return unusable;
  if (static_cast<Bytes>(status.st_size) != account.file_bytes) return unusable;
  FORELOAD_ASSIGN(const RecordRows rows, load_rows(destination, account));
  if (rows.view().size() != samples) return unusable;
  FORELOAD_ASSIGN(const std::uint64_t hash, hash_file(file.get(), account.file_bytes, stop));
  if (hash != account.file_hash) return unusable;
  return account;
}

Result<RecordRows> load_rows(const Destination& destination, const ShardAccount& account) {
  return RecordRows::open(destination.work(rows_name(account.shard)), account.file_hash);
}

}  // namespace foreload
