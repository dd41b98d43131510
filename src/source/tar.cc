// Tar shards, read by random access and never extracted. Member names are only ever keys: the one file that is opened
// for a sample is its shard, below the folder of the list.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/write_file.h"
#include "source/dataset.h"
#include "source/directory.h"
#include "source/index_builder.h"
#include "source/payload.h"
#include "source/records.h"
#include "source/tar_list.h"
#include "source/tar_samples.h"
#include "source/tar_shard.h"

namespace foreload {

namespace {

// One shard after the scan.
struct ScannedShard {
  FileStamp stamp;
  Status status;
};

ReadAt reader_of(int fd, Bytes size) {
  return [fd, size](Bytes offset, std::span<std::byte> into) -> Result<std::size_t> {
    const Bytes there = std::min<Bytes>(into.size(), size - std::min(offset, size));
    FORELOAD_TRY(read_exactly(fd, offset, into.first(there)));
    return static_cast<std::size_t>(there);
  };
}

bool is_gzip(int fd) {
  unsigned char start[2] = {};
  return pread(fd, start, sizeof start, 0) == sizeof start && start[0] == 0x1f && start[1] == 0x8b;
}

class TarDataset final : public Dataset {
 public:
  // `classes`: names of the labels, where the members do not tell.
  TarDataset(Place place, std::vector<std::string> shards, std::string label_field, std::vector<std::string> classes)
      : place_(std::move(place)),
        shards_(std::move(shards)),
        label_field_(std::move(label_field)),
        classes_(std::move(classes)) {}

  const Place& place() const override { return place_; }
  Result<std::vector<std::byte>> scan(ScanContext& context) const override;
  bool is_current(const IndexView& index, const std::string& index_path, unsigned threads) const override;
  Status save_index(const std::string& index_path, std::span<const std::byte> content,
                    const IndexView&) const override {
    remove_leftovers(index_path);
    return replace_file(index_path, content);
  }

 private:
  std::string display(std::size_t shard) const { return fmt::format("{}/{}", place_.folder, shards_[shard]); }
  Result<Descriptor> open_shard(std::size_t shard) const;
  Result<ShardContent> scan_shard_file(std::size_t shard, FileStamp& stamp, ScanContext& context) const;
  std::vector<std::byte> build(const std::vector<ShardContent>& contents, const std::vector<ScannedShard>& scanned,
                               const TarSamples& chosen, IndexBuilder builder, const Warnings& warnings) const;
  Error nothing_found(const Warnings& warnings) const;

  const Place place_;
  const std::vector<std::string> shards_;
  const std::string label_field_;
  const std::vector<std::string> classes_;
};

Result<Descriptor> TarDataset::open_shard(std::size_t shard) const {
  auto opened = open_below(place_.root.get(), shards_[shard]);
  if (opened.ok()) return opened;
  return Error{opened.error().code,
               fmt::format("the shard {} of the list can not be used: {}", display(shard), opened.error().message)};
}

Result<ShardContent> TarDataset::scan_shard_file(std::size_t shard, FileStamp& stamp, ScanContext& context) const {
  FORELOAD_ASSIGN(const Descriptor file, open_shard(shard));
  FORELOAD_ASSIGN(stamp, stamp_of(file.get()));
  const ShardScanOptions options{shards_[shard], label_field_, &context.progress};
  auto content = scan_shard(reader_of(file.get(), stamp.size), stamp.size, options, context.warnings);
  if (!content.ok()) {
    const std::string advice = is_gzip(file.get()) ? "; it is compressed with gzip: unpack it first" : "";
    return Error{content.error().code,
                 fmt::format("cannot index the shard {}: {}{}", display(shard), content.error().message, advice)};
  }
  FORELOAD_ASSIGN(const FileStamp after, stamp_of(file.get()));
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
                      format_count(shards_.size()), display(0), payload_extensions(), format_count(ignored))};
}

std::vector<std::byte> TarDataset::build(const std::vector<ShardContent>& contents,
                                         const std::vector<ScannedShard>& scanned, const TarSamples& chosen,
                                         IndexBuilder builder, const Warnings& warnings) const {
  for (std::size_t i = 0; i < shards_.size(); ++i) builder.add_shard(shards_[i], scanned[i].stamp);
  for (const std::string& name : chosen.classes.empty() ? classes_ : chosen.classes) builder.add_class(name);
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
  std::vector<ShardContent> contents(shards_.size());
  std::vector<ScannedShard> scanned(shards_.size());
  parallel_for(context.threads, shards_.size(), [&](std::uint64_t i) {
    auto content = scan_shard_file(i, scanned[i].stamp, context);
    if (content.ok()) {
      contents[i] = std::move(*content);
    } else {
      scanned[i].status = std::move(content).error();
    }
  });
  for (const ScannedShard& shard : scanned) FORELOAD_TRY(shard.status);
  const TarSamples chosen = choose_samples(contents, context.warnings);
  if (chosen.samples.empty()) return nothing_found(context.warnings);
  context.progress.done = chosen.samples.size();
  context.progress.total = chosen.samples.size();
  return build(contents, scanned, chosen, IndexBuilder(IndexKind::kTar, chosen.samples.size(), scan_time_ns),
               context.warnings);
}

bool TarDataset::is_current(const IndexView& index, const std::string&, unsigned threads) const {
  if (index.kind() != IndexKind::kTar || index.shards() != shards_.size()) return false;
  std::atomic<bool> all_current{true};
  parallel_for(threads, shards_.size(), [&](std::uint64_t i) {
    if (!all_current) return;
    const auto file = open_below(place_.root.get(), shards_[i]);
    const auto stamp = file.ok() ? stamp_of(file->get()) : Result<FileStamp>(file.error());
    if (!stamp.ok() || *stamp != index.shard_stamp(i) || index.shard_path(i) != shards_[i]) all_current = false;
  });
  return all_current;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_tars(const std::string& list, const SourceOptions& options) {
  FORELOAD_ASSIGN(ShardList found, expand_shards(list));
  Place place;
  FORELOAD_ASSIGN(place.root, open_directory(found.folder));
  const std::string_view first_folder = directory_name(found.shards.front());
  place.index_folder = found.folder;
  if (!first_folder.empty()) place.index_folder.append("/").append(first_folder);
  place.identity = fmt::format("tar {} {}", options.label_field, found.pattern);
  place.folder = std::move(found.folder);
  return std::unique_ptr<Dataset>(std::make_unique<TarDataset>(std::move(place), std::move(found.shards),
                                                               options.label_field, std::vector<std::string>()));
}

Result<std::unique_ptr<Dataset>> open_record_shards(const std::string& folder, const RecordShards& shards) {
  const std::string label_field = SourceOptions().label_field;
  Place place;
  FORELOAD_ASSIGN(place.root, open_directory(folder));
  place.folder = folder;
  while (place.folder.size() > 1 && place.folder.back() == '/') place.folder.pop_back();
  place.index_folder = place.folder;
  // The same as of "FOLDER/shard-*.tar", so that both share one index.
  place.identity = fmt::format("tar {} shard-*.tar", label_field);
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < shards.count; ++i) names.push_back(record_shard_name(i));
  return std::unique_ptr<Dataset>(
      std::make_unique<TarDataset>(std::move(place), std::move(names), label_field, shards.classes));
}

}  // namespace foreload
