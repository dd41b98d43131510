#include "source/tar_dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/thread.h"
#include "source/directory.h"
#include "source/index_builder.h"
#include "source/payload.h"
#include "source/tar_samples.h"
#include "source/tar_shard.h"

namespace foreload {

namespace {

// One shard after the scan.
struct ScannedShard {
  FileStamp stamp;
  Status status;
};

bool is_gzip(const ReadAt& read_at) {
  std::array<std::byte, 2> start{};
  const auto got = read_at(0, start);
  return got.ok() && *got == start.size() && start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b};
}

// The first error; of several shards that are missing it tells how many.
Status all_scanned(const std::vector<ScannedShard>& scanned) {
  const auto failed = std::ranges::find_if(scanned, [](const ScannedShard& shard) { return !shard.status.ok(); });
  if (failed == scanned.end()) return {};
  Error error = failed->status.error();
  if (error.code != Code::kNotFound || scanned.size() == 1) return error;
  const auto missing = std::ranges::count_if(scanned, [](const ScannedShard& shard) {
    return !shard.status.ok() && shard.status.error().code == Code::kNotFound;
  });
  error.message += fmt::format("; of the {} shards of the list {} {} missing, this is the first: name those that exist",
                               format_count(scanned.size()), format_count(static_cast<std::uint64_t>(missing)),
                               missing == 1 ? "is" : "are");
  return error;
}

class TarDataset final : public Dataset {
 public:
  TarDataset(Place place, TarList list, std::unique_ptr<ShardFiles> files)
      : place_(std::move(place)), list_(std::move(list)), files_(std::move(files)) {}

  const Place& place() const override { return place_; }
  Result<std::vector<std::byte>> scan(ScanContext& context) const override;
  bool is_current(const IndexView& index, const std::string& index_path, unsigned threads) const override;

 private:
  std::string display(std::size_t shard) const { return place_.display(list_.shards[shard]); }
  Result<OpenShard> open_shard(std::size_t shard) const;
  Result<ShardContent> scan_shard_file(std::size_t shard, FileStamp& stamp, ScanContext& context) const;
  std::vector<std::byte> build(const std::vector<ShardContent>& contents, const std::vector<ScannedShard>& scanned,
                               const TarSamples& chosen, IndexBuilder builder, const Warnings& warnings) const;
  Error nothing_found(const Warnings& warnings) const;

  const Place place_;
  const TarList list_;
  const std::unique_ptr<ShardFiles> files_;  // goes before the place
};

Result<OpenShard> TarDataset::open_shard(std::size_t shard) const {
  auto opened = files_->open(list_.shards[shard]);
  if (opened.ok() || place_.store) return opened;  // errors of objects name them
  return Error{opened.error().code,
               fmt::format("the shard {} of the list can not be used: {}", display(shard), opened.error().message)};
}

Result<ShardContent> TarDataset::scan_shard_file(std::size_t shard, FileStamp& stamp, ScanContext& context) const {
  FORELOAD_ASSIGN(const OpenShard file, open_shard(shard));
  stamp = file.stamp;
  const ShardScanOptions options{list_.shards[shard], list_.label_field, &context.progress};
  auto content = scan_shard(file.read_at, stamp.size, options, context.warnings);
  if (!content.ok()) {
    const std::string advice = is_gzip(file.read_at) ? "; it is compressed with gzip: unpack it first" : "";
    return Error{content.error().code,
                 fmt::format("cannot index the shard {}: {}{}", display(shard), content.error().message, advice)};
  }
  FORELOAD_ASSIGN(const FileStamp after, files_->stamp(list_.shards[shard]));
  if (after == stamp) return content;
  return Error{Code::kDataChanged, fmt::format("the shard {} was changed while it was indexed: try again when it is "
                                               "complete",
                                               display(shard))};
}

Error TarDataset::nothing_found(const Warnings& warnings) const {
  const std::uint64_t ignored = warnings.count(Cause::kOtherExtension) + warnings.count(Cause::kNoPayload);
  return {Code::kNotFound,
          fmt::format("{} tar shards, the first is {}, hold no samples: looked for members with {}; {} others were "
                      "ignored",
                      format_count(list_.shards.size()), display(0), payload_extensions(), format_count(ignored))};
}

std::vector<std::byte> TarDataset::build(const std::vector<ShardContent>& contents,
                                         const std::vector<ScannedShard>& scanned, const TarSamples& chosen,
                                         IndexBuilder builder, const Warnings& warnings) const {
  for (std::size_t i = 0; i < list_.shards.size(); ++i) builder.add_shard(list_.shards[i], scanned[i].stamp);
  for (const std::string& name : chosen.classes.empty() ? list_.classes : chosen.classes) builder.add_class(name);
  std::unordered_map<std::string, std::uint64_t> directories;
  for (const TarSample& sample : chosen.samples) {
    const std::string_view key = chosen.key(contents, sample);
    const auto [directory, is_new] = directories.try_emplace(std::string(directory_name(key)), directories.size());
    if (is_new) builder.add_directory(directory->first);
    const ShardMember& member = contents[sample.shard].payloads[sample.payload];
    builder.add({.directory = directory->second,
                 .name = base_name(key),
                 .length = member.length,
                 .label = sample.label,
                 .shard = sample.shard,
                 .offset = member.offset});
  }
  for (const std::string& line : warnings.lines()) builder.add_note(line);
  return std::move(builder).finish();
}

Result<std::vector<std::byte>> TarDataset::scan(ScanContext& context) const {
  const std::int64_t scan_time_ns = wall_clock_ns();
  std::vector<ShardContent> contents(list_.shards.size());
  std::vector<ScannedShard> scanned(list_.shards.size());
  parallel_for(files_->threads(context.threads), list_.shards.size(), [&](std::uint64_t i) {
    auto content = scan_shard_file(i, scanned[i].stamp, context);
    if (content.ok()) {
      contents[i] = std::move(*content);
    } else {
      scanned[i].status = std::move(content).error();
    }
  });
  FORELOAD_TRY(all_scanned(scanned));
  const TarSamples chosen = choose_samples(contents, context.warnings);
  if (chosen.samples.empty()) return nothing_found(context.warnings);
  context.progress.done = chosen.samples.size();
  context.progress.total = chosen.samples.size();
  return build(contents, scanned, chosen, IndexBuilder(IndexKind::kTar, chosen.samples.size(), scan_time_ns),
               context.warnings);
}

bool TarDataset::is_current(const IndexView& index, const std::string&, unsigned threads) const {
  if (index.kind() != IndexKind::kTar || index.shards() != list_.shards.size()) return false;
  std::atomic<bool> all_current{true};
  parallel_for(files_->threads(threads), list_.shards.size(), [&](std::uint64_t i) {
    if (!all_current) return;
    const auto stamp = files_->stamp(list_.shards[i]);
    if (!stamp.ok() || *stamp != index.shard_stamp(i) || index.shard_path(i) != list_.shards[i]) all_current = false;
  });
  return all_current;
}

}  // namespace

std::unique_ptr<Dataset> make_tar_dataset(Place place, TarList list, std::unique_ptr<ShardFiles> files) {
  FORELOAD_CHECK(!list.shards.empty(), "a list has a shard");
  return std::make_unique<TarDataset>(std::move(place), std::move(list), std::move(files));
}

}  // namespace foreload
