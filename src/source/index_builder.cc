#include "source/index_builder.h"

#include <deque>

#include "base/check.h"

namespace foreload {

namespace {

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kIndexAlignment - 1) / kIndexAlignment * kIndexAlignment;
}

// The columns of one file, and the packed bytes behind them.
class Columns {
 public:
  void add(ColumnId id, std::span<const std::int64_t> values) {
    const PackedColumn& packed = packed_.emplace_back(pack(values));
    columns_.push_back({id, packed.width, packed.count, packed.base, packed.bytes});
  }
  void add(ColumnId id, std::span<const std::byte> text) { columns_.push_back({id, 1, text.size(), 0, text}); }
  void add(ColumnId blocks, ColumnId text, const NameTableBuilder& names) {
    add(blocks, names.blocks());
    add(text, names.text());
  }
  std::span<const IndexColumn> columns() const { return columns_; }

 private:
  std::deque<PackedColumn> packed_;  // a deque: the spans into it stay valid
  std::vector<IndexColumn> columns_;
};

}  // namespace

IndexBuilder::IndexBuilder(IndexKind kind, std::uint64_t samples, std::int64_t scan_time_ns) : fingerprint_(samples) {
  header_.kind = static_cast<std::uint32_t>(kind);
  header_.samples = samples;
  header_.scan_time_ns = scan_time_ns;
  for (auto* column : {&lengths_, &labels_, &sample_directories_}) column->reserve(samples);
  if (kind == IndexKind::kFolder) mtimes_.reserve(samples);
  if (kind != IndexKind::kTar) return;
  sample_shards_.reserve(samples);
  offsets_.reserve(samples);
}

std::uint64_t IndexBuilder::add_directory(std::string_view path, std::int64_t mtime_ns, std::uint64_t listing) {
  directories_.add(path);
  directory_paths_.emplace_back(path);
  directory_mtimes_.push_back(mtime_ns);
  directory_listings_.push_back(static_cast<std::int64_t>(listing));
  return directories_.size() - 1;
}

std::uint64_t IndexBuilder::add_shard(std::string_view path, const FileStamp& stamp) {
  shards_.add(path);
  shard_sizes_.push_back(static_cast<std::int64_t>(stamp.size));
  shard_mtimes_.push_back(stamp.mtime_ns);
  return shards_.size() - 1;
}

void IndexBuilder::add_note(std::string_view line) {
  if (notes_.size() + line.size() + 1 > kMaxNoteBytes) return;
  notes_.append(line).push_back('\n');
}

void IndexBuilder::add(const IndexedSample& sample) {
  const std::string& directory = directory_paths_.at(sample.directory);
  std::string key = directory;
  if (!key.empty()) key += '/';
  key += sample.name;
  fingerprint_.add(key, sample.length, sample.label);
  names_.add(sample.name);
  lengths_.push_back(static_cast<std::int64_t>(sample.length));
  labels_.push_back(sample.label);
  sample_directories_.push_back(static_cast<std::int64_t>(sample.directory));
  if (header_.kind == static_cast<std::uint32_t>(IndexKind::kFolder)) {
    mtimes_.push_back(sample.mtime_ns);
    return;
  }
  sample_shards_.push_back(static_cast<std::int64_t>(sample.shard));
  offsets_.push_back(static_cast<std::int64_t>(sample.offset));
}

std::vector<std::byte> IndexBuilder::finish() && {
  FORELOAD_CHECK(names_.size() == header_.samples, "every announced sample was added");
  header_.directories = directories_.size();
  header_.shards = shards_.size();
  header_.classes = classes_.size();
  header_.fingerprint = fingerprint_.value();
  Columns columns;
  columns.add(ColumnId::kLength, lengths_);
  columns.add(ColumnId::kLabel, labels_);
  columns.add(ColumnId::kDirectory, sample_directories_);
  columns.add(ColumnId::kNameBlock, ColumnId::kNameText, names_);
  columns.add(ColumnId::kDirectoryBlock, ColumnId::kDirectoryText, directories_);
  columns.add(ColumnId::kClassBlock, ColumnId::kClassText, classes_);
  columns.add(ColumnId::kDirectoryMtime, directory_mtimes_);
  columns.add(ColumnId::kDirectoryListing, directory_listings_);
  columns.add(ColumnId::kMtime, mtimes_);
  columns.add(ColumnId::kShardBlock, ColumnId::kShardText, shards_);
  columns.add(ColumnId::kShardSize, shard_sizes_);
  columns.add(ColumnId::kShardMtime, shard_mtimes_);
  columns.add(ColumnId::kShard, sample_shards_);
  columns.add(ColumnId::kOffset, offsets_);
  if (!notes_.empty()) columns.add(ColumnId::kNoteText, std::as_bytes(std::span(notes_)));
  return assemble_index(header_, columns.columns());
}

std::vector<std::byte> assemble_index(IndexHeader header, std::span<const IndexColumn> columns) {
  FORELOAD_CHECK(columns.size() <= kMaxIndexColumns, "an index has few columns");
  const std::uint64_t hash_at = sizeof(IndexHeader) + columns.size() * sizeof(IndexColumnEntry);
  const std::uint64_t content_at = hash_at + sizeof(std::uint64_t);
  std::vector<IndexColumnEntry> entries;
  std::uint64_t end = content_at;
  for (const IndexColumn& column : columns) {
    end = aligned(end);
    entries.push_back({static_cast<std::uint32_t>(column.id), column.width, end, column.count, column.base});
    end += column.bytes.size();
  }
  std::vector<std::byte> file(end);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::copy(columns[i].bytes.begin(), columns[i].bytes.end(), file.begin() + static_cast<long>(entries[i].offset));
  }
  header.file_bytes = end;
  header.columns = static_cast<std::uint32_t>(columns.size());
  header.content_hash = hash_bytes(std::span(file).subspan(content_at));
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, entries.data(), entries.size() * sizeof(IndexColumnEntry));
  const std::uint64_t header_hash = hash_bytes(std::span(file).first(hash_at));
  std::memcpy(file.data() + hash_at, &header_hash, sizeof header_hash);
  return file;
}

}  // namespace foreload
