// DiskStore: samples in a file on local disk that outlives the process. A sample's entry is written after its bytes, so
// a kill leaves at most bytes that nobody finds; nothing is flushed, so after a loss of power entries or bytes may be
// torn, which their hashes show. One thread reads, one writes; the other methods: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>

#include "base/files.h"
#include "base/mutex.h"
#include "foreload/result.h"
#include "plan/placement.h"
#include "tier/disk_folder.h"
#include "tier/disk_table.h"

namespace foreload {

// For tests: sees the raw result of every write, bytes or -errno, and says what the store is to believe instead.
class WriteFault {
 public:
  virtual ~WriteFault() = default;
  virtual int apply(int result) = 0;
};

// Who is told what a store holds. From its two threads; must not block.
class DiskListener {
 public:
  virtual ~DiskListener() = default;
  virtual void added(SampleId id, Bytes offset, std::uint64_t content) = 0;
  virtual void removed(SampleId id) = 0;
};

struct DiskStoreOptions {
  std::string folder{};
  std::optional<std::uint32_t> rank{};  // of several that are given the same folder: each has a cache of its own in it
  std::uint32_t sharers = 1;            // so many, who divide the free space among them
  DiskSamples samples{};
  Bytes total_bytes = 0;        // of all samples
  Bytes limit = 0;              // for all files together; 0: what the samples need
  bool direct = false;          // read past the page cache
  WriteFault* fault = nullptr;  // must outlive the store
};

class DiskStore {
 public:
  struct Place {
    int fd = -1;
    Bytes offset = 0;
  };

  // Codes as of DiskFolder::open. At most 90 % of the free space is taken.
  static Result<std::unique_ptr<DiskStore>> open(const DiskStoreOptions& options);

  static Bytes table_bytes(std::uint64_t samples);  // of the files: what is not for sample bytes

  // Of all that is there now, and of what changes. Before the first read and write; null, or it outlives the store.
  void tell(DiskListener* listener) FORELOAD_EXCLUDES(mutex_);
  void tell_of(SampleId id) FORELOAD_EXCLUDES(mutex_);  // once more, if it is there

  const std::string& path() const { return folder_.path(); }
  std::string neighbours() const { return folder_.neighbours(); }
  Bytes capacity() const { return capacity_; }       // for sample bytes
  bool is_short() const { return short_of_space_; }  // less than was asked for: the file system is full
  Bytes used_bytes() const FORELOAD_EXCLUDES(mutex_);
  std::uint64_t damaged() const { return damaged_; }    // samples whose bytes or entries were wrong
  std::uint64_t outdated() const { return outdated_; }  // that were there at open(), of files that are others now
  bool has(SampleId id) const FORELOAD_EXCLUDES(mutex_);

  // Where to read the sample; it stays there until end_read() or drop().
  std::optional<Place> begin_read(SampleId id) FORELOAD_EXCLUDES(mutex_);
  // Are these the sample's bytes? If not, it is dropped. REQUIRES: between begin_read() and this, nothing.
  bool end_read(SampleId id, std::span<const std::byte> bytes) FORELOAD_EXCLUDES(mutex_);
  void drop(SampleId id) FORELOAD_EXCLUDES(mutex_);  // it can not be read

  // What may stay when room is needed; without it, nothing must go. Before the first write().
  void keep(Placement wanted) { wanted_ = std::move(wanted); }
  const Placement& wanted() const { return wanted_; }
  // False: there is no room. After an error nothing is written any more.
  Result<bool> write(SampleId id, std::span<const std::byte> bytes) FORELOAD_EXCLUDES(mutex_);
  // After there was none: will there be, because what makes room was being read? Waits until a read has ended.
  bool wait_for_room(Time deadline) FORELOAD_EXCLUDES(mutex_);
  bool writable() const { return writable_; }
  std::optional<std::string> failure() const FORELOAD_EXCLUDES(mutex_);  // why nothing is written any more

 private:
  DiskStore(const DiskStoreOptions& options, DiskFolder folder, Bytes capacity);
  Status load();
  Status load_entries(Bytes file_bytes);
  LoadedEntry take(SampleId id, const DiskEntry& entry) FORELOAD_EXCLUDES(mutex_);
  std::optional<Bytes> allocate(Bytes length) FORELOAD_EXCLUDES(mutex_);
  void end_reading(SampleId id) FORELOAD_REQUIRES(mutex_);
  bool spare(SampleId id) FORELOAD_REQUIRES(mutex_);
  std::optional<SampleId> take_unwanted() FORELOAD_EXCLUDES(mutex_);
  void forget(SampleId id, Bytes offset) FORELOAD_EXCLUDES(mutex_);
  int write_at(const Descriptor& file, std::span<const std::byte> bytes, Bytes offset);  // 0 or errno
  int write_entry(SampleId id, const DiskEntry& entry);
  Error stop(int error_number) FORELOAD_EXCLUDES(mutex_);

  DiskStoreOptions options_;
  DiskFolder folder_;
  Bytes capacity_;
  bool short_of_space_ = false;
  Descriptor table_file_;
  Descriptor data_file_;
  Descriptor read_file_;  // the data file, to be read past the page cache
  DiskListener* listener_ = nullptr;
  Placement wanted_;
  SampleId cursor_ = 0;                    // where the search for unwanted samples goes on
  std::optional<std::uint64_t> spared_{};  // it left out one that was read then: ended_ at that time
  std::uint64_t outdated_ = 0;
  std::atomic<bool> writable_{true};
  std::atomic<std::uint64_t> damaged_{0};
  mutable Mutex mutex_;
  std::optional<std::string> failure_ FORELOAD_GUARDED_BY(mutex_);
  DiskTable table_ FORELOAD_GUARDED_BY(mutex_);
  std::unordered_set<SampleId> reading_ FORELOAD_GUARDED_BY(mutex_);  // at most the depth of the read engine
  std::uint64_t ended_ FORELOAD_GUARDED_BY(mutex_) = 0;               // reads
  CondVar read_ended_;
};

}  // namespace foreload
