// Room is given up in the table file first, then in memory, then used again: whoever is killed in between leaves no
// entry that points at another sample's bytes. A sample that is being read keeps its room.
#include "tier/disk_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

namespace foreload {
namespace {

constexpr std::uint64_t kEntriesAtOnce = 4096;
constexpr std::size_t kLongestWrite = 64_MiB;
constexpr Bytes kSlackShare = 32;  // so that holes of dropped samples do not keep others out

struct Space {
  Bytes capacity = 0;
  bool is_short = false;
};

// What is used already stays ours, also when others have filled the rest of the file system since.
Space measure(const DiskStoreOptions& options, Bytes free, Bytes ours) {
  const Bytes table = DiskStore::table_bytes(options.samples.count);
  const Bytes most = std::max((free / options.sharers + ours) / 10 * 9, ours);
  Bytes wanted = table + options.total_bytes + options.total_bytes / kSlackShare;
  if (options.limit != 0) wanted = std::min(wanted, options.limit);
  const Bytes all = std::min(wanted, most);
  return {.capacity = all > table ? all - table : 0, .is_short = all < wanted};
}

Result<Bytes> occupied(const Descriptor& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return errno_error("cannot examine a file of the disk cache", errno);
  return static_cast<Bytes>(status.st_blocks) * 512;
}

Status resize(const Descriptor& file, Bytes size, const std::string& path) {
  if (ftruncate(file.get(), static_cast<off_t>(size)) == 0) return {};
  return errno_error("cannot set the size of a file in " + path, errno);
}

}  // namespace

Bytes DiskStore::table_bytes(std::uint64_t samples) {
  return kDiskHeaderBytes + samples * sizeof(DiskEntry);
}

DiskStore::DiskStore(const DiskStoreOptions& options, DiskFolder folder, Bytes capacity)
    : options_(options), folder_(std::move(folder)), capacity_(capacity), table_(options.samples, capacity) {}

Result<std::unique_ptr<DiskStore>> DiskStore::open(const DiskStoreOptions& options) {
  FORELOAD_ASSIGN(DiskFolder folder,
                  DiskFolder::open(options.folder, DiskFolder::name_for(options.samples.fingerprint, options.rank)));
  FORELOAD_ASSIGN(Descriptor table, folder.open_file("table"));
  FORELOAD_ASSIGN(Descriptor data, folder.open_file("data"));
  FORELOAD_ASSIGN(const Bytes in_table, occupied(table));
  FORELOAD_ASSIGN(const Bytes in_data, occupied(data));
  FORELOAD_ASSIGN(const Bytes free, folder.free_bytes());
  const Space space = measure(options, free, in_table + in_data);
  if (space.capacity == 0) {
    return Error{Code::kIo,
                 fmt::format("{} has no room for samples: its table alone takes {}, {} are free", folder.path(),
                             format_bytes(table_bytes(options.samples.count)), format_bytes(free))};
  }
  std::unique_ptr<DiskStore> store(new DiskStore(options, std::move(folder), space.capacity));
  store->short_of_space_ = space.is_short;
  store->table_file_ = std::move(table);
  store->data_file_ = std::move(data);
  if (options.direct) {
    auto direct = store->folder_.open_file("data", O_DIRECT);
    if (direct) store->read_file_ = std::move(*direct);  // a file system without it is read as it can be
  }
  FORELOAD_TRY(store->load());
  return store;
}

Status DiskStore::load() {
  std::vector<std::byte> head(sizeof(DiskHeader));
  FORELOAD_ASSIGN(const FileStamp found, stamp_of(table_file_.get()));
  head.resize(std::min<Bytes>(head.size(), found.size));
  FORELOAD_TRY(read_exactly(table_file_.get(), 0, head));
  const DiskSamples& samples = options_.samples;
  const HeaderKind kind = judge_disk_header(head, samples.fingerprint, samples.count);
  if (kind == HeaderKind::kForeign) {
    return Error{Code::kIo,
                 fmt::format("{} is left alone, because its table is of another version, machine or dataset: "
                             "remove it, or choose another folder",
                             path())};
  }
  if (kind == HeaderKind::kDamaged) {
    if (found.size != 0) ++damaged_;
    FORELOAD_TRY(resize(table_file_, 0, path()));
    FORELOAD_TRY(resize(data_file_, 0, path()));
    const DiskHeader header = make_disk_header(samples.fingerprint, samples.count);
    if (const int failed = write_at(table_file_, std::as_bytes(std::span(&header, 1)), 0)) return stop(failed);
  } else {
    FORELOAD_TRY(load_entries(found.size));
  }
  FORELOAD_TRY(resize(table_file_, table_bytes(samples.count), path()));
  FORELOAD_ASSIGN(const FileStamp data, stamp_of(data_file_.get()));
  if (data.size > capacity_) FORELOAD_TRY(resize(data_file_, capacity_, path()));
  MutexLock lock(mutex_);
  damaged_ += table_.settle();
  return {};
}

// What is not taken is dropped. Right entries of other files, and those whose bytes are about to be cut off, are
// cleared in the file too: when the dataset or the limit is the former one again, they would point at others' bytes.
Status DiskStore::load_entries(Bytes file_bytes) {
  const std::uint64_t whole = file_bytes < kDiskHeaderBytes ? 0 : (file_bytes - kDiskHeaderBytes) / sizeof(DiskEntry);
  const std::uint64_t count = std::min(options_.samples.count, whole);
  std::vector<DiskEntry> entries(std::min(count, kEntriesAtOnce));
  for (SampleId first = 0; first < count; first += entries.size()) {
    const std::span<DiskEntry> some = std::span(entries).first(std::min<std::uint64_t>(entries.size(), count - first));
    const Bytes at = kDiskHeaderBytes + first * sizeof(DiskEntry);
    FORELOAD_TRY(read_exactly(table_file_.get(), at, std::as_writable_bytes(some)));
    bool cleared = false;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (some[i] == DiskEntry{}) continue;
      const LoadedEntry kind = take(first + i, some[i]);
      damaged_ += kind == LoadedEntry::kDamaged ? 1 : 0;
      outdated_ += kind == LoadedEntry::kOutdated ? 1 : 0;
      if (kind != LoadedEntry::kOutdated && kind != LoadedEntry::kBeyond) continue;
      some[i] = {};
      cleared = true;
    }
    if (!cleared) continue;
    if (const int failed = write_at(table_file_, std::as_bytes(some), at)) return stop(failed);
  }
  return {};
}

LoadedEntry DiskStore::take(SampleId id, const DiskEntry& entry) {
  MutexLock lock(mutex_);
  return table_.load(id, entry);
}

void DiskStore::tell(DiskListener* listener) {
  listener_ = listener;
  for (SampleId id = 0; id < options_.samples.count; ++id) tell_of(id);
}

void DiskStore::tell_of(SampleId id) {
  MutexLock lock(mutex_);
  if (listener_ != nullptr && table_.has(id)) listener_->added(id, table_.offset(id), table_.content(id));
}

Bytes DiskStore::used_bytes() const {
  MutexLock lock(mutex_);
  return table_.used_bytes();
}

std::optional<std::string> DiskStore::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

bool DiskStore::has(SampleId id) const {
  MutexLock lock(mutex_);
  return table_.has(id);
}

std::optional<DiskStore::Place> DiskStore::begin_read(SampleId id) {
  MutexLock lock(mutex_);
  if (!table_.has(id)) return std::nullopt;
  reading_.insert(id);
  return Place{read_file_.valid() ? read_file_.get() : data_file_.get(), table_.offset(id)};
}

bool DiskStore::end_read(SampleId id, std::span<const std::byte> bytes) {
  const std::uint64_t content = hash_bytes(bytes);
  {
    MutexLock lock(mutex_);
    if (table_.content(id) == content) {
      end_reading(id);
      return true;
    }
  }
  drop(id);
  return false;
}

void DiskStore::drop(SampleId id) {
  Bytes offset = 0;
  {
    MutexLock lock(mutex_);
    offset = table_.offset(id);
    table_.remove(id);
    end_reading(id);
  }
  ++damaged_;
  forget(id, offset);
}

// The room is free when the table file says so.
void DiskStore::forget(SampleId id, Bytes offset) {
  if (listener_ != nullptr) listener_->removed(id);
  if (!writable_) return;
  if (const int failed = write_entry(id, {})) {
    (void)stop(failed);
    return;
  }
  MutexLock lock(mutex_);
  table_.release(offset, options_.samples.length(id));
}

Result<bool> DiskStore::write(SampleId id, std::span<const std::byte> bytes) {
  if (!writable_) return false;
  if (bytes.empty() || bytes.size() != options_.samples.length(id) || has(id)) return false;
  const auto offset = allocate(bytes.size());
  if (!offset) return false;
  if (const int failed = write_at(data_file_, bytes, *offset)) return stop(failed);
  const std::uint64_t content = hash_bytes(bytes);
  DiskEntry entry;
  {
    MutexLock lock(mutex_);
    entry = table_.entry_for(id, *offset, content);
  }
  if (const int failed = write_entry(id, entry)) return stop(failed);
  if (listener_ != nullptr) listener_->added(id, *offset, content);
  MutexLock lock(mutex_);
  table_.add(id, *offset, content);
  return true;
}

std::optional<Bytes> DiskStore::allocate(Bytes length) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (const auto offset = table_.allocate(length)) return offset;
    }
    const auto victim = take_unwanted();
    if (!victim || !writable_) return std::nullopt;
  }
}

void DiskStore::end_reading(SampleId id) {
  reading_.erase(id);
  ++ended_;
  read_ended_.notify_all();
}

bool DiskStore::wait_for_room(Time deadline) {
  if (!spared_) return false;
  MutexLock lock(mutex_);
  while (ended_ == *spared_ && now() < deadline) read_ended_.wait_until(mutex_, deadline);
  return true;
}

// Does it stay where it is?
bool DiskStore::spare(SampleId id) {
  if (!table_.has(id) || wanted_.is_home(id)) return true;
  if (!reading_.contains(id)) return false;
  spared_ = ended_;
  return true;
}

// Gives up the room of one sample that the plan does not want.
std::optional<SampleId> DiskStore::take_unwanted() {
  Bytes offset = 0;
  {
    MutexLock lock(mutex_);
    if (wanted_.homes() == 0) return std::nullopt;
    if (cursor_ == 0) spared_.reset();
    while (cursor_ < table_.size() && spare(cursor_)) ++cursor_;
    if (cursor_ == table_.size()) {
      if (spared_) cursor_ = 0;  // once more, when it was read
      return std::nullopt;
    }
    offset = table_.offset(cursor_);
    table_.remove(cursor_);
  }
  forget(cursor_, offset);
  return cursor_++;
}

int DiskStore::write_entry(SampleId id, const DiskEntry& entry) {
  return write_at(table_file_, std::as_bytes(std::span(&entry, 1)), kDiskHeaderBytes + id * sizeof(DiskEntry));
}

int DiskStore::write_at(const Descriptor& file, std::span<const std::byte> bytes, Bytes offset) {
  while (!bytes.empty()) {
    const ssize_t wrote =
        pwrite(file.get(), bytes.data(), std::min(bytes.size(), kLongestWrite), static_cast<off_t>(offset));
    int result = wrote < 0 ? -errno : static_cast<int>(wrote);
    if (options_.fault != nullptr) result = options_.fault->apply(result);
    if (result == -EINTR) continue;
    if (result <= 0) return result == 0 ? EIO : -result;
    bytes = bytes.subspan(static_cast<std::size_t>(result));
    offset += static_cast<Bytes>(result);
  }
  return 0;
}

Error DiskStore::stop(int error_number) {
  writable_ = false;
  Error error{Code::kIo, fmt::format("cannot write to {}: {}", path(), std::generic_category().message(error_number))};
  MutexLock lock(mutex_);
  if (!failure_) failure_ = error.message;
  return error;
}

}  // namespace foreload
