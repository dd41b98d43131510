#include "source/local_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "source/index_builder.h"
#include "source/warnings.h"

namespace foreload {

namespace {

class IndexedSource final : public LocalSource {
 public:
  IndexedSource(std::string uri, std::unique_ptr<Dataset> dataset, CachedIndex cached, std::optional<RecordRows> rows)
      : uri_(std::move(uri)), dataset_(std::move(dataset)), cached_(std::move(cached)), rows_(std::move(rows)) {}

  std::uint64_t size() const override { return index().size(); }
  Bytes length(SampleId id) const override { return index().length(id); }
  std::int64_t label(SampleId id) const override { return index().label(id); }
  std::string key(SampleId id) const override { return index().key(id); }
  Extent locate(SampleId id) const override;
  std::optional<Dimensions> dimensions(SampleId id) const override { return index().dimensions(id); }
  std::span<const std::uint32_t> rows(SampleId id) const override {
    return rows_ ? rows_->view().rows(id) : std::span<const std::uint32_t>();
  }
  const std::string& uri() const override { return uri_; }
  std::vector<std::string> classes() const override { return index().classes(); }
  Bytes total_bytes() const override { return index().total_bytes(); }
  Bytes max_length() const override { return index().max_length(); }
  std::uint64_t fingerprint() const override { return index().fingerprint(); }
  std::uint64_t validators() const override;
  std::uint64_t files() const override { return index().kind() == IndexKind::kTar ? index().shards() : size(); }
  Status store_dimensions(std::span<const Dimensions> dimensions) const override;

 private:
  const IndexView& index() const { return cached_.index.view(); }

  const std::string uri_;
  const std::unique_ptr<Dataset> dataset_;
  const CachedIndex cached_;
  const std::optional<RecordRows> rows_;
};

// As Source::validators(), but nothing is located.
std::uint64_t IndexedSource::validators() const {
  Hasher hash;
  const bool folder = index().kind() == IndexKind::kFolder;
  for (SampleId id = 0; folder && id < size(); ++id) hash.add(static_cast<std::uint64_t>(index().mtime_ns(id)));
  for (std::uint64_t i = 0; !folder && i < index().shards(); ++i) {
    const FileStamp stamp = index().shard_stamp(i);
    hash.add(stamp.size).add(static_cast<std::uint64_t>(stamp.mtime_ns));
  }
  return hash.value();
}

Extent IndexedSource::locate(SampleId id) const {
  const Place& place = dataset_->place();
  Extent extent;
  extent.root = place.root.get();
  extent.store = place.store.get();
  extent.length = index().length(id);
  if (index().kind() == IndexKind::kFolder) {
    extent.path = index().key(id);
    extent.display = place.display(extent.path);
    extent.file = id;
    extent.stamp = {extent.length, index().mtime_ns(id)};
    return extent;
  }
  extent.file = index().shard(id);
  extent.path = index().shard_path(extent.file);
  extent.display = fmt::format("{}: {}", place.display(extent.path), index().key(id));
  extent.shared = true;
  extent.offset = index().offset(id);
  extent.stamp = index().shard_stamp(extent.file);
  return extent;
}

Status IndexedSource::store_dimensions(std::span<const Dimensions> dimensions) const {
  if (cached_.path.empty()) {
    return Error{Code::kIo,
                 fmt::format("{} has no index file that could keep dimensions: name a writable index folder", uri_)};
  }
  const std::vector<std::byte> content = index().with_dimensions(dimensions);
  return save_index(*dataset_, cached_.path, content, index());
}

std::uint64_t fingerprint_of(const Source& source) {
  Fingerprint fingerprint(source.size());
  for (SampleId id = 0; id < source.size(); ++id) {
    fingerprint.add(source.key(id), source.length(id), source.label(id));
  }
  return fingerprint.value();
}

class ConcatenatedSource final : public LocalSource {
 public:
  explicit ConcatenatedSource(std::vector<std::unique_ptr<LocalSource>> parts);

  std::uint64_t size() const override { return starts_.back().sample; }
  Bytes length(SampleId id) const override { return part_of(id).length(local(id)); }
  std::int64_t label(SampleId id) const override { return part_of(id).label(local(id)); }
  std::string key(SampleId id) const override { return part_of(id).key(local(id)); }
  Extent locate(SampleId id) const override;
  std::optional<Dimensions> dimensions(SampleId id) const override { return part_of(id).dimensions(local(id)); }
  std::span<const std::uint32_t> rows(SampleId id) const override { return part_of(id).rows(local(id)); }
  const std::string& uri() const override { return uri_; }
  std::vector<std::string> classes() const override;
  Bytes total_bytes() const override { return total_bytes_; }
  Bytes max_length() const override { return max_length_; }
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::uint64_t files() const override { return starts_.back().file; }
  Status store_dimensions(std::span<const Dimensions> dimensions) const override;

 private:
  struct Start {
    SampleId sample = 0;
    std::uint64_t file = 0;
  };
  std::size_t number_of(SampleId id) const;
  const LocalSource& part_of(SampleId id) const { return *parts_[number_of(id)]; }
  SampleId local(SampleId id) const { return id - starts_[number_of(id)].sample; }

  const std::vector<std::unique_ptr<LocalSource>> parts_;
  std::vector<Start> starts_{{}};  // of each part, and behind the last
  std::string uri_;
  Bytes total_bytes_ = 0;
  Bytes max_length_ = 0;
  std::uint64_t fingerprint_ = 0;
};

ConcatenatedSource::ConcatenatedSource(std::vector<std::unique_ptr<LocalSource>> parts) : parts_(std::move(parts)) {
  for (const auto& part : parts_) {
    const Start last = starts_.back();
    starts_.push_back({last.sample + part->size(), last.file + part->files()});
    uri_.append(uri_.empty() ? "" : ",").append(part->uri());
    total_bytes_ += part->total_bytes();
    max_length_ = std::max(max_length_, part->max_length());
  }
  fingerprint_ = fingerprint_of(*this);
}

std::size_t ConcatenatedSource::number_of(SampleId id) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), id,
                                      [](SampleId wanted, const Start& start) { return wanted < start.sample; });
  return static_cast<std::size_t>(after - starts_.begin()) - 1;
}

Extent ConcatenatedSource::locate(SampleId id) const {
  const std::size_t number = number_of(id);
  Extent extent = parts_[number]->locate(id - starts_[number].sample);
  extent.file += starts_[number].file;
  return extent;
}

// Labels are kept as they are, so they have names only if all parts use the same ones.
std::vector<std::string> ConcatenatedSource::classes() const {
  const std::vector<std::string> classes = parts_.front()->classes();
  for (const auto& part : parts_) {
    if (part->classes() != classes) return {};
  }
  return classes;
}

Status ConcatenatedSource::store_dimensions(std::span<const Dimensions> dimensions) const {
  for (const auto& part : parts_) {
    FORELOAD_TRY(part->store_dimensions(dimensions.first(part->size())));
    dimensions = dimensions.subspan(part->size());
  }
  return {};
}

class SelectedSource final : public LocalSource {
 public:
  // REQUIRES: every id exists in `whole`.
  SelectedSource(std::unique_ptr<LocalSource> whole, std::vector<SampleId> ids);

  std::uint64_t size() const override { return ids_.size(); }
  Bytes length(SampleId id) const override { return whole_->length(ids_[id]); }
  std::int64_t label(SampleId id) const override { return whole_->label(ids_[id]); }
  std::string key(SampleId id) const override { return whole_->key(ids_[id]); }
  Extent locate(SampleId id) const override { return whole_->locate(ids_[id]); }
  std::optional<Dimensions> dimensions(SampleId id) const override { return whole_->dimensions(ids_[id]); }
  std::span<const std::uint32_t> rows(SampleId id) const override { return whole_->rows(ids_[id]); }
  const std::string& uri() const override { return whole_->uri(); }
  std::vector<std::string> classes() const override { return whole_->classes(); }
  Bytes total_bytes() const override { return total_bytes_; }
  Bytes max_length() const override { return max_length_; }
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::uint64_t files() const override { return whole_->files(); }
  Status store_dimensions(std::span<const Dimensions>) const override {
    return Error{Code::kInvalid, "dimensions can only be stored for a whole dataset, not for a subset of " + uri()};
  }

 private:
  const std::unique_ptr<LocalSource> whole_;
  const std::vector<SampleId> ids_;
  Bytes total_bytes_ = 0;
  Bytes max_length_ = 0;
  std::uint64_t fingerprint_ = 0;
};

SelectedSource::SelectedSource(std::unique_ptr<LocalSource> whole, std::vector<SampleId> ids)
    : whole_(std::move(whole)), ids_(std::move(ids)) {
  for (const SampleId id : ids_) {
    total_bytes_ += whole_->length(id);
    max_length_ = std::max(max_length_, whole_->length(id));
  }
  fingerprint_ = fingerprint_of(*this);
}

struct KeyUse {
  SampleId id = 0;
  std::uint64_t times = 0;
};

}  // namespace

std::unique_ptr<LocalSource> make_indexed_source(std::string uri, std::unique_ptr<Dataset> dataset, CachedIndex index,
                                                 std::optional<RecordRows> rows) {
  return std::make_unique<IndexedSource>(std::move(uri), std::move(dataset), std::move(index), std::move(rows));
}

std::unique_ptr<LocalSource> concatenate(std::vector<std::unique_ptr<LocalSource>> parts) {
  FORELOAD_CHECK(!parts.empty(), "there is something to concatenate");
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<ConcatenatedSource>(std::move(parts));
}

Result<std::unique_ptr<LocalSource>> select_ids(std::unique_ptr<LocalSource> whole, std::vector<SampleId> ids) {
  for (const SampleId id : ids) {
    if (id < whole->size()) continue;
    return Error{Code::kNotFound, fmt::format("the subset asks for sample {}, but {} has only the samples 0 to {}", id,
                                              whole->uri(), whole->size() - 1)};
  }
  return std::unique_ptr<LocalSource>(std::make_unique<SelectedSource>(std::move(whole), std::move(ids)));
}

Result<std::unique_ptr<LocalSource>> select_keys(std::unique_ptr<LocalSource> whole,
                                                 const std::vector<std::string>& keys) {
  std::unordered_map<std::string, KeyUse> uses;
  for (const std::string& key : keys) uses.try_emplace(key);
  for (SampleId id = 0; id < whole->size(); ++id) {
    const auto use = uses.find(whole->key(id));
    if (use == uses.end()) continue;
    if (use->second.times++ == 0) use->second.id = id;
  }
  std::vector<SampleId> ids;
  for (const std::string& key : keys) {
    const KeyUse& use = uses.at(key);
    if (use.times == 0) {
      return Error{Code::kNotFound,
                   fmt::format("the subset asks for the key {}, which {} does not have", printable(key), whole->uri())};
    }
    if (use.times > 1) {
      return Error{Code::kInvalid, fmt::format("the subset asks for the key {}, which {} has {} times: name the ids",
                                               printable(key), whole->uri(), use.times)};
    }
    ids.push_back(use.id);
  }
  return std::unique_ptr<LocalSource>(std::make_unique<SelectedSource>(std::move(whole), std::move(ids)));
}

Status store_dimensions(const Source& source, std::span<const Dimensions> dimensions) {
  if (dimensions.size() != source.size()) {
    return Error{Code::kInvalid,
                 fmt::format("dimensions of {} samples were given, but {} has {}", format_count(dimensions.size()),
                             source.uri(), format_count(source.size()))};
  }
  const auto* local = dynamic_cast<const LocalSource*>(&source);
  if (local == nullptr) return Error{Code::kInvalid, source.uri() + " keeps no index file"};
  return local->store_dimensions(dimensions);
}

}  // namespace foreload
