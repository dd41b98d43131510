// Appending copies 48 bytes under a mutex. Whoever fills the buffer takes it, together with the place in the
// file that it belongs to, and writes it after unlocking; the others go on in a fresh buffer meanwhile. So a
// thread holds at most one full buffer, and buffers never interleave. They may reach the file in any order:
// every event carries its time, and reading sorts by it.
#include "base/event_record.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "base/files.h"
#include "base/machine.h"
#include "base/mutex.h"
#include "base/text.h"
#include "base/write_file.h"

namespace foreload {

namespace {

constexpr std::array<char, 8> kMagic{'f', 'o', 'r', 'e', 'l', 'o', 'a', 'd'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kEventBytes = 48;
constexpr std::size_t kBufferBytes = kEventBytes * 4096;
constexpr auto kLastKind = static_cast<std::uint16_t>(EventKind::kCancelled);

class Writer {
 public:
  explicit Writer(std::byte* to) : to_(to) {}
  template <typename T>
  Writer& put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) *to_++ = static_cast<std::byte>(value >> (8 * i));
    return *this;
  }

 private:
  std::byte* to_;
};

class Reader {
 public:
  explicit Reader(const std::byte* from) : from_(from) {}
  template <typename T>
  T take() {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(*from_++) << (8 * i));
    return value;
  }

 private:
  const std::byte* from_;
};

std::array<std::byte, kHeaderBytes> encoded_header() {
  std::array<std::byte, kHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  Writer(bytes.data() + kMagic.size()).put(kVersion).put(static_cast<std::uint32_t>(kEventBytes));
  return bytes;
}

void encode(const Event& event, std::byte* to) {
  Writer(to)
      .put(static_cast<std::uint64_t>(event.time.count()))
      .put(static_cast<std::uint16_t>(event.kind))
      .put(event.thread)
      .put(event.epoch)
      .put(event.position)
      .put(event.a)
      .put(event.b)
      .put(event.c);
}

Event decode(const std::byte* from) {
  Reader reader(from);
  Event event;
  event.time = Time(static_cast<std::int64_t>(reader.take<std::uint64_t>()));
  event.kind = static_cast<EventKind>(reader.take<std::uint16_t>());
  event.thread = reader.take<std::uint16_t>();
  event.epoch = reader.take<std::uint32_t>();
  event.position = reader.take<std::uint64_t>();
  event.a = reader.take<std::uint64_t>();
  event.b = reader.take<std::uint64_t>();
  event.c = reader.take<std::uint64_t>();
  return event;
}

Status write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("cannot write the event record " + path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

}  // namespace

class EventRecord::File {
 public:
  File(Descriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {
    buffer_.reserve(kBufferBytes);
  }

  void append(const Event& event) FORELOAD_EXCLUDES(mutex_) {
    std::array<std::byte, kEventBytes> bytes;
    encode(event, bytes.data());
    const Full full = add(bytes);
    if (!full.bytes.empty()) write(full);
  }

  Status close() FORELOAD_EXCLUDES(mutex_) {
    const Full rest = finish();
    if (!rest.bytes.empty()) write(rest);
    const MutexLock lock(mutex_);
    return error_ ? Status(*error_) : Status();
  }

 private:
  struct Full {
    std::vector<std::byte> bytes;
    std::uint64_t offset = 0;
  };

  Full add(std::span<const std::byte> event) FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (closed_ || error_) return {};
    buffer_.insert(buffer_.end(), event.begin(), event.end());
    return buffer_.size() < kBufferBytes ? Full{} : take();
  }

  Full finish() FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    closed_ = true;
    while (writing_ > 0) written_.wait(mutex_);
    return buffer_.empty() || error_ ? Full{} : take();
  }

  Full take() FORELOAD_REQUIRES(mutex_) {
    Full full{std::move(buffer_), offset_};
    offset_ += full.bytes.size();
    ++writing_;
    buffer_ = {};
    if (!closed_) buffer_.reserve(kBufferBytes);
    return full;
  }

  void write(const Full& full) FORELOAD_EXCLUDES(mutex_) {
    const Status status = write_at(descriptor_.get(), full.bytes, full.offset, path_);
    const MutexLock lock(mutex_);
    if (!status.ok() && !error_) error_ = status.error();
    if (--writing_ == 0) written_.notify_all();
  }

  const Descriptor descriptor_;
  const std::string path_;
  Mutex mutex_;
  CondVar written_;
  std::vector<std::byte> buffer_ FORELOAD_GUARDED_BY(mutex_);
  std::uint64_t offset_ FORELOAD_GUARDED_BY(mutex_) = kHeaderBytes;  // of the buffer in the file
  unsigned writing_ FORELOAD_GUARDED_BY(mutex_) = 0;
  bool closed_ FORELOAD_GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ FORELOAD_GUARDED_BY(mutex_);
};

Result<std::unique_ptr<EventRecord>> EventRecord::create(const std::string& path) {
  FORELOAD_ASSIGN(Descriptor file, create_output(path));
  FORELOAD_TRY(write_at(file.get(), encoded_header(), 0, path));
  return std::unique_ptr<EventRecord>(new EventRecord(std::make_unique<File>(std::move(file), path)));
}

EventRecord::EventRecord(std::unique_ptr<File> file) : file_(std::move(file)) {}

EventRecord::~EventRecord() {
  // Who wants to know about write errors has called close() before.
  static_cast<void>(file_->close());
}

void EventRecord::append(const Event& event) {
  file_->append(event);
}

Status EventRecord::close() {
  return file_->close();
}

namespace {

Status check_header(std::span<const std::byte> bytes, const std::string& name) {
  const auto header = encoded_header();
  if (bytes.size() >= kHeaderBytes && std::equal(header.begin(), header.end(), bytes.begin())) return {};
  return Error{Code::kInvalid, fmt::format("{} is not an event record of version {}; record the run again with this "
                                           "version of foreload",
                                           name, kVersion)};
}

// Whole events; `at`: where they stand in the file.
Status append_events(std::span<const std::byte> bytes, Bytes at, const std::string& name, std::vector<Event>& events) {
  for (; bytes.size() >= kEventBytes; bytes = bytes.subspan(kEventBytes), at += kEventBytes) {
    const Event event = decode(bytes.data());
    const auto kind = static_cast<std::uint16_t>(event.kind);
    // Kind 0 is the hole that a killed process leaves where another thread's buffer had not arrived yet.
    if (kind == 0) continue;
    if (kind > kLastKind) {
      return Error{Code::kInvalid, fmt::format("{} is damaged: unknown event kind {} at offset {}", name, kind, at)};
    }
    events.push_back(event);
  }
  return {};
}

void sort_by_time(std::vector<Event>& events) {
  std::stable_sort(events.begin(), events.end(), [](const Event& x, const Event& y) { return x.time < y.time; });
}

Result<std::size_t> read_up_to(int fd, Bytes offset, std::span<std::byte> into, const std::string& path) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read the event record " + path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<Descriptor> open_record(const std::string& path, Bytes& size) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return errno_error("cannot open the event record " + path, errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return errno_error("cannot examine " + path, errno);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, path + " is not a regular file, so no event record"};
  size = static_cast<Bytes>(status.st_size);
  return file;
}

}  // namespace

Result<std::vector<Event>> parse_event_record(std::span<const std::byte> bytes, const std::string& name) {
  FORELOAD_TRY(check_header(bytes, name));
  std::vector<Event> events;
  FORELOAD_TRY(append_events(bytes.subspan(kHeaderBytes), kHeaderBytes, name, events));
  sort_by_time(events);
  return events;
}

// Not by a mapping: a run that still writes it, or somebody who cuts it, must not end us with a signal.
Result<std::vector<Event>> read_event_record(const std::string& path) {
  Bytes size = 0;
  FORELOAD_ASSIGN(const Descriptor file, open_record(path, size));
  std::array<std::byte, kHeaderBytes> header;
  FORELOAD_ASSIGN(const std::size_t got, read_up_to(file.get(), 0, header, path));
  FORELOAD_TRY(check_header(std::span(header).first(got), path));
  const Bytes needed = size + size / 2;  // events are as long in memory as in the file; sorting needs half of it again
  if (const Bytes free = available_memory(); needed > free) {
    return Error{Code::kNoMemory, fmt::format("{} is {} long, and reading it needs {} of memory; {} are available",
                                              path, format_bytes(size), format_bytes(needed), format_bytes(free))};
  }
  std::vector<Event> events;
  events.reserve(size / kEventBytes);
  std::vector<std::byte> buffer(kBufferBytes);
  for (Bytes at = kHeaderBytes;; at += buffer.size()) {
    FORELOAD_ASSIGN(const std::size_t filled, read_up_to(file.get(), at, buffer, path));
    FORELOAD_TRY(append_events(std::span(buffer).first(filled), at, path, events));
    if (filled < buffer.size()) break;
  }
  sort_by_time(events);
  return events;
}

}  // namespace foreload
