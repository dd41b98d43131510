// 1. Look: options, places, index of the source, plan. Nothing is written.
// 2. Claim the destination; see which shards are there already.
// 3. Convert what is missing.
// 4. Put together what concerns all shards: row offsets, index with dimensions, and at last the manifest.
#include "record/convert.h"

#include <fmt/core.h>

#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "base/machine.h"
#include "record/convert_plan.h"
#include "record/convert_run.h"
#include "record/destination.h"
#include "record/shard_account.h"
#include "source/local_source.h"
#include "source/record_rows.h"
#include "source/records.h"
#include "source/warnings.h"

namespace foreload {

namespace {

using Json = nlohmann::ordered_json;

Result<std::unique_ptr<Source>> open_untouched(SourceOptions options) {
  options.index_folder.clear();
  options.keep_index = false;
  return open_source(options);
}

// What is written, as its readers will see it; its index is written beside it.
Result<std::unique_ptr<LocalSource>> open_result(const Destination& destination, const ConvertPlan& plan) {
  const RecordShards shards{plan.shards(), plan.source().classes()};
  FORELOAD_ASSIGN(std::unique_ptr<Dataset> dataset, open_record_shards(destination.folder(), shards));
  FORELOAD_ASSIGN(CachedIndex index, open_index(*dataset, destination.folder(), {}));
  return make_indexed_source(destination.folder(), std::move(dataset), std::move(index));
}

// Every sample has to be where the plan says, with its name, length and label.
Status compare(const Source& result, const ConvertPlan& plan, const std::vector<ShardAccount>& accounts) {
  bool same = result.size() == plan.samples();
  for (std::uint64_t shard = 0; same && shard < plan.shards(); ++shard) {
    RecordNames names;
    for (std::uint64_t place = plan.first(shard); same && place < plan.end(shard); ++place) {
      const std::uint64_t i = place - plan.first(shard);
      const SampleId id = plan.sample_at(place);
      const std::string key = plan.source().key(id);
      FORELOAD_ASSIGN(const RecordNames::Pair expected, names.next(key, becomes_jpeg(key, accounts[shard].outcome(i))));
      same = result.key(place) == expected.payload && result.length(place) == accounts[shard].lengths[i] &&
             result.label(place) == plan.source().label(id);
    }
  }
  if (same) return {};
  return Error{Code::kIo, fmt::format("what was written to {} does not have the samples of {}: remove it and convert "
                                      "again",
                                      printable(result.uri()), printable(plan.source().uri()))};
}

Result<std::vector<std::byte>> merged_rows(const Destination& destination, const std::vector<ShardAccount>& accounts,
                                           std::uint64_t fingerprint) {
  RecordRowsBuilder builder;
  for (const ShardAccount& account : accounts) {
    FORELOAD_ASSIGN(const RecordRows rows, load_rows(destination, account));
    for (SampleId i = 0; i < rows.view().size(); ++i) builder.add(rows.view().rows(i));
  }
  return std::move(builder).finish(fingerprint);
}

std::vector<Dimensions> dimensions_of(const std::vector<ShardAccount>& accounts) {
  std::vector<Dimensions> dimensions;
  for (const ShardAccount& account : accounts) {
    dimensions.insert(dimensions.end(), account.sizes.begin(), account.sizes.end());
  }
  return dimensions;
}

Json manifest_of(const ConvertPlan& plan, const ConvertReport& report, const std::vector<ShardAccount>& accounts) {
  Json json{{"schema", 1}, {"made_by", "foreload convert"}};
  json["plan"] = Json::parse(plan.text());
  json["fingerprint"] = hex16(report.fingerprint);
  json["samples"] = report.samples;
  json["bytes"] = report.bytes;
  json["outcomes"] = {{"rewritten", report.rewritten},
                      {"shrunk", report.shrunk},
                      {"copied", report.copied},
                      {"damaged", report.damaged},
                      {"bad", report.bad.size()}};
  json["bad"] = Json::array();
  for (const BadSample& bad : report.bad) {
    json["bad"].push_back({{"id", bad.id}, {"key", bad.key}, {"reason", bad.reason}});
  }
  json["classes"] = plan.source().classes();
  json["shards"] = Json::array();
  for (const ShardAccount& account : accounts) {
    json["shards"].push_back({{"name", record_shard_name(account.shard)},
                              {"samples", account.lengths.size()},
                              {"bytes", account.file_bytes},
                              {"xxh3", hex16(account.file_hash)}});
  }
  return json;
}

void count(const ShardAccount& account, ConvertReport& report) {
  for (std::size_t i = 0; i < account.lengths.size(); ++i) {
    report.bytes += account.lengths[i];
    report.rewritten += account.outcome(i) == Outcome::kRewritten ? 1 : 0;
    report.shrunk += account.outcome(i) == Outcome::kShrunk ? 1 : 0;
    report.copied += account.outcome(i) == Outcome::kCopied ? 1 : 0;
    report.damaged += account.outcome(i) == Outcome::kDamaged ? 1 : 0;
  }
  report.bad.insert(report.bad.end(), account.bad.begin(), account.bad.end());
}

Status finish(const Destination& destination, const ConvertPlan& plan, const std::vector<ShardAccount>& accounts,
              ConvertReport& report) {
  FORELOAD_ASSIGN(const std::unique_ptr<LocalSource> result, open_result(destination, plan));
  FORELOAD_TRY(compare(*result, plan, accounts));
  FORELOAD_TRY(result->store_dimensions(dimensions_of(accounts)));
  report.fingerprint = result->fingerprint();
  FORELOAD_ASSIGN(const std::vector<std::byte> rows, merged_rows(destination, accounts, report.fingerprint));
  FORELOAD_TRY(destination.publish(kRecordsRows, rows));
  // Keys need not be UTF-8; a report must not fail for that.
  const std::string text =
      manifest_of(plan, report, accounts).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  FORELOAD_TRY(destination.publish(kRecordsManifest, std::as_bytes(std::span(text))));
  return destination.finish();
}

// Of a conversion that was complete before. Opening it compares it with its manifest.
Status read_report(const Destination& destination, ConvertReport& report) {
  FORELOAD_ASSIGN(const RecordsManifest manifest, read_manifest(destination.folder()));
  report.bytes = manifest.bytes;
  report.rewritten = manifest.rewritten;
  report.shrunk = manifest.shrunk;
  report.copied = manifest.copied;
  report.damaged = manifest.damaged;
  for (const RecordsManifest::Bad& bad : manifest.bad) report.bad.push_back({bad.id, bad.key, bad.reason});
  FORELOAD_ASSIGN(const auto result, open_source({.datasets = {"records:" + destination.folder()}}));
  if (result->size() != report.samples) {
    return Error{Code::kDataChanged, fmt::format("{} has {} samples, its source {}: convert again into a new folder",
                                                 printable(destination.folder()), result->size(), report.samples)};
  }
  report.fingerprint = result->fingerprint();
  return {};
}

Result<std::vector<ShardAccount>> convert_missing(const ConvertOptions& options, const ConvertPlan& plan,
                                                  const Destination& destination, ConvertReport& report) {
  std::vector<ShardAccount> accounts(plan.shards());
  std::vector<std::uint64_t> missing;
  for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
    const std::uint64_t samples = plan.end(shard) - plan.first(shard);
    auto account = load_account(destination, shard, samples, options.stop);
    if (account) {
      accounts[shard] = *std::move(account);
    } else if (account.error().code == Code::kCancelled) {
      return account.error();
    } else {
      missing.push_back(shard);
      report.made += samples;
    }
  }
  FORELOAD_ASSIGN(std::vector<ShardAccount> made, ConvertRun(options, plan, destination, missing).run());
  for (std::size_t i = 0; i < missing.size(); ++i) accounts[missing[i]] = std::move(made[i]);
  return accounts;
}

Result<ConvertReport> convert(const ConvertOptions& options) {
  for (const std::string& uri : options.source.datasets) FORELOAD_TRY(check_destination(options.destination, uri));
  FORELOAD_ASSIGN(const std::unique_ptr<Source> source, open_untouched(options.source));
  FORELOAD_ASSIGN(const ConvertPlan plan, ConvertPlan::make(*source, options));
  if (options.planned) options.planned(plan.samples());
  FORELOAD_ASSIGN(const Destination destination, Destination::claim(options.destination, plan.text()));
  ConvertReport report;
  report.source_uri = source->uri();
  report.source_fingerprint = source->fingerprint();
  report.samples = plan.samples();
  report.shards = plan.shards();
  report.source_bytes = source->total_bytes();
  report.threads = options.threads > 0 ? options.threads : usable_cores();
  if (destination.is_complete()) {
    FORELOAD_TRY(read_report(destination, report));
    return report;
  }
  FORELOAD_ASSIGN(const std::vector<ShardAccount> accounts, convert_missing(options, plan, destination, report));
  for (const ShardAccount& account : accounts) count(account, report);
  FORELOAD_TRY(finish(destination, plan, accounts, report));
  return report;
}

}  // namespace

Result<ConvertReport> convert_dataset(const ConvertOptions& options) {
  try {
    return convert(options);
  } catch (const std::bad_alloc&) {  // what was held is free again, so there is room for a message
    return Error{Code::kNoMemory, kNoMemoryToConvert};
  }
}

}  // namespace foreload
