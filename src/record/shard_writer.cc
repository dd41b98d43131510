// The bytes are hashed on their way out. When all are on the disk, the page cache is asked to forget them, the file is
// hashed again from the beginning, and its headers are read as any reader would: names, places and lengths have to be
// those that were meant.
#include "record/shard_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/write_file.h"
#include "source/records.h"
#include "source/tar_reader.h"
#include "source/tar_writer.h"
#include "source/warnings.h"

namespace foreload {

namespace {

constexpr std::size_t kWriteBytes = 1 << 20;

Error not_as_written(const std::string& path, const char* what) {
  return {Code::kIo, fmt::format("{} is not what was written to it ({}): the disk or the memory of this machine is "
                                 "not to be trusted. Run the same command again",
                                 path, what)};
}

}  // namespace

ShardWriter::ShardWriter(const Destination& destination, std::uint64_t shard, Descriptor file)
    : destination_(&destination), file_(std::move(file)) {
  account_.shard = shard;
}

std::string ShardWriter::path() const {
  return destination_->work(record_shard_name(account_.shard));
}

Result<ShardWriter> ShardWriter::create(const Destination& destination, std::uint64_t shard) {
  FORELOAD_ASSIGN(Descriptor file, destination.create(record_shard_name(shard)));
  return ShardWriter(destination, shard, std::move(file));
}

ShardWriter::~ShardWriter() {
  // Half a shard only takes up room.
  if (file_.valid()) destination_->remove(record_shard_name(account_.shard));
}

Error ShardWriter::failed(const Error& error) const {
  if (destination_->is_there()) {
    return {error.code, fmt::format("{}. The finished shards are kept: the same command continues", error.message)};
  }
  return {error.code, fmt::format("{}. The destination {} was removed or renamed meanwhile: convert again into a new "
                                  "folder",
                                  error.message, printable(destination_->folder()))};
}

Status ShardWriter::flush() {
  Status status = write_all(file_.get(), pending_, path());
  pending_.clear();
  if (!status) return failed(status.error());
  return {};
}

Status ShardWriter::append(std::span<const std::byte> bytes) {
  hasher_.add_raw(bytes);
  size_ += bytes.size();
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  return pending_.size() < kWriteBytes ? Status() : flush();
}

Status ShardWriter::append_member(const std::string& name, std::span<const std::byte> content) {
  const std::string header = tar_file_header(name, content.size());
  FORELOAD_TRY(append(std::as_bytes(std::span(header))));
  members_.push_back({name, size_, content.size()});
  FORELOAD_TRY(append(content));
  const std::vector<std::byte> padding(tar_padded(content.size()) - content.size());
  return append(padding);
}

Status ShardWriter::add(const Source& source, SampleId id, const ConvertedSample& sample) {
  const std::string key = source.key(id);
  FORELOAD_ASSIGN(const RecordNames::Pair names, names_.next(key, becomes_jpeg(key, sample.outcome)));
  const std::string label = fmt::format("{}", source.label(id));
  FORELOAD_TRY(append_member(names.label, std::as_bytes(std::span(label))));
  FORELOAD_TRY(append_member(names.payload, sample.bytes));
  account_.outcomes += static_cast<char>(sample.outcome);
  account_.lengths.push_back(sample.bytes.size());
  account_.sizes.push_back(sample.size);
  if (sample.outcome == Outcome::kBad) account_.bad.push_back({id, key, sample.reason});
  rows_.add(sample.rows);
  return {};
}

Status ShardWriter::verify_members() const {
  const ReadAt read_at = [this](Bytes offset, std::span<std::byte> into) -> Result<std::size_t> {
    const Bytes there = std::min<Bytes>(into.size(), size_ - std::min(offset, size_));
    FORELOAD_TRY(read_exactly(file_.get(), offset, into.first(there)));
    return static_cast<std::size_t>(there);
  };
  TarReader reader(read_at, size_);
  for (const Member& expected : members_) {
    FORELOAD_ASSIGN(const std::optional<TarMember> member, reader.next());
    if (!member || member->name != expected.name || member->offset != expected.offset ||
        member->size != expected.size || member->type != TarType::kFile) {
      return not_as_written(path(), "a member differs");
    }
  }
  FORELOAD_ASSIGN(const std::optional<TarMember> more, reader.next());
  if (more || reader.is_unmarked() || reader.truncated()) return not_as_written(path(), "its end differs");
  return {};
}

Status ShardWriter::verify() const {
  // Advice only: without it the bytes may come from memory.
  static_cast<void>(posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED));
  FORELOAD_ASSIGN(const FileStamp stamp, stamp_of(file_.get()));
  if (stamp.size != size_) return not_as_written(path(), "its length differs");
  FORELOAD_ASSIGN(const std::uint64_t hash, hash_file(file_.get(), size_, nullptr));
  if (hash != hasher_.value()) return not_as_written(path(), "its hash differs");
  return verify_members();
}

Result<ShardAccount> ShardWriter::publish() && {
  const std::vector<std::byte> end(kTarEndBytes);
  FORELOAD_TRY(append(end));
  FORELOAD_TRY(flush());
  if (fsync(file_.get()) != 0) return failed(errno_error("cannot write " + path(), errno));
  FORELOAD_TRY(verify());
  account_.file_bytes = size_;
  account_.file_hash = hasher_.value();
  const std::vector<std::byte> rows = std::move(rows_).finish(account_.file_hash);
  if (Status status = save_account(*destination_, account_, rows); !status) return failed(status.error());
  if (Status status = destination_->publish(record_shard_name(account_.shard)); !status) return failed(status.error());
  file_ = Descriptor();
  return std::move(account_);
}

}  // namespace foreload
