// Every read under way has a slot with room for the longest sample. The memory is mapped for all and touched by those
// that are used, so a few long samples cost what they are.
#include "probe/read_stream.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/machine.h"
#include "source/throttle.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kMostMemory = 512_MiB;  // of reads under way, as samples are on average
constexpr Bytes kMostBounce = 1_MiB;
constexpr Bytes kOutlier = 8;                // times the mean: what is longer is passed over
constexpr Bytes kNoOutlier = 4_MiB;          // unless it is as short as this
constexpr Duration kPatience = 20ms;         // between two looks at stop()
constexpr std::uint64_t kMostPassed = 4096;  // samples in a row that are empty or too long
constexpr Bytes kBlock = 4096;

struct Room {
  Bytes longest = 0;
  unsigned depth = 1;
};

Room room_for(const Source& source, unsigned depth) {
  const Bytes mean = std::max<Bytes>(source.total_bytes() / std::max<std::uint64_t>(source.size(), 1), 1);
  const Bytes longest = std::min(source.max_length(), std::max(kOutlier * mean, kNoOutlier));
  const Bytes memory = std::min(kMostMemory, available_memory() / 4);
  const Bytes most = std::max<Bytes>(memory / std::min(2 * mean, longest), 1);
  return {longest, static_cast<unsigned>(std::min<Bytes>(depth, most))};
}

}  // namespace

double ReadWindow::bytes_per_s() const {
  return elapsed.count() > 0 ? static_cast<double>(bytes) / seconds(elapsed) : 0;
}

Result<std::unique_ptr<ReadStream>> ReadStream::open(const Source& source, const ReadStreamOptions& options) {
  if (source.size() == 0 || source.max_length() == 0) {
    return Error{Code::kInvalid, source.uri() + " has no bytes that could be read"};
  }
  const Room room = room_for(source, options.depth);
  FORELOAD_ASSIGN(Region memory, Region::map(room.longest * room.depth, "reads of the analysis"));
  std::optional<Throttle> throttle;
  if (!options.storage.empty()) {
    FORELOAD_ASSIGN(throttle, Throttle::open(options.storage));
  }
  FORELOAD_ASSIGN(auto engine, open_read_engine({.kind = options.io,
                                                 .depth = room.depth,
                                                 .direct = options.direct,
                                                 .bounce_bytes = std::min(room.longest, kMostBounce)}));
  const unsigned depth = std::min(room.depth, engine->max_depth());
  auto tier = std::make_unique<SourceTier>(source, std::move(engine), std::move(throttle),
                                           SourceTierOptions{.direct = options.direct});
  return std::unique_ptr<ReadStream>(new ReadStream(source, std::move(memory), room.longest, depth, std::move(tier)));
}

ReadStream::ReadStream(const Source& source, Region memory, Bytes longest, unsigned depth,
                       std::unique_ptr<SourceTier> tier)
    : source_(source), memory_(std::move(memory)), longest_(longest), slots_(depth), tier_(std::move(tier)) {
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].room = memory_.bytes().subspan(i * longest, longest);
}

ReadStream::~ReadStream() {
  give_up();
}

// Emulated storage and objects end at once; what the engine reads is waited for.
void ReadStream::give_up() {
  tier_->hurry(true);
  while (tier_->in_flight() > 0) {
    reads_.clear();
    tier_->wait(reads_, kNever);
  }
  tier_->hurry(false);
  for (Slot& slot : slots_) slot.id.reset();
  ended_.clear();
}

Status ReadStream::begin(Order order, unsigned depth, const Allowance& allowance) {
  give_up();
  order_ = std::move(order);
  order_ended_ = false;
  depth_ = depth;
  to_pass_ = depth;
  return allowance.go_on();
}

std::optional<SampleId> ReadStream::next_id() {
  for (std::uint64_t passed = 0; passed < kMostPassed; ++passed) {
    const auto id = order_();
    if (!id) break;
    const Bytes bytes = source_.length(*id);
    if (bytes > 0 && bytes <= longest_) return id;
  }
  order_ended_ = true;
  return std::nullopt;
}

void ReadStream::start_more() {
  for (std::size_t i = 0; i < depth_ && !order_ended_; ++i) {
    if (slots_[i].id) continue;
    slots_[i].id = next_id();
    if (slots_[i].id) tier_->start(*slots_[i].id, slots_[i].room.first(length(i)), now());
  }
}

Status ReadStream::step(Time deadline, const Allowance& allowance) {
  for (const std::size_t slot : ended_) slots_[slot].id.reset();
  ended_.clear();
  start_more();
  while (tier_->in_flight() > 0 && ended_.empty() && now() < deadline) {
    FORELOAD_TRY(allowance.go_on());
    reads_.clear();
    tier_->wait(reads_, std::min(deadline, now() + kPatience));
    for (SourceRead& read : reads_) {
      FORELOAD_TRY(std::move(read.status));
      const auto is_its = [&](const Slot& slot) { return slot.id == read.id; };
      // Of a sample that is read twice at once, either will do.
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (!is_its(slots_[i]) || std::find(ended_.begin(), ended_.end(), i) != ended_.end()) continue;
        ended_.push_back(i);
        break;
      }
    }
  }
  return {};
}

Result<ReadWindow> ReadStream::window(const WindowSize& size, Allowance& allowance) {
  ReadWindow window;
  Time last = window_start_;
  for (;;) {
    FORELOAD_TRY(step(size.deadline, allowance));
    if (ended_.empty()) break;
    last = now();
    Bytes bytes = 0;
    for (const std::size_t slot : ended_) bytes += length(slot);
    allowance.spend(bytes);
    if (to_pass_ > 0) {
      to_pass_ -= std::min<std::uint64_t>(to_pass_, ended_.size());
      window_start_ = last;
      continue;
    }
    window.bytes += bytes;
    window.samples += ended_.size();
    const bool is_full = window.bytes >= size.bytes || last - window_start_ >= size.time;
    if (window.samples >= size.least && is_full) break;
  }
  window.elapsed = last - window_start_;
  window_start_ = last;
  return window;
}

Status ReadStream::read_all(const std::function<Status(SampleId, std::span<const std::byte>)>& show, Time deadline,
                            Allowance& allowance) {
  for (;;) {
    FORELOAD_TRY(step(deadline, allowance));
    if (ended_.empty()) break;
    for (const std::size_t slot : ended_) {
      allowance.spend(length(slot));
      FORELOAD_TRY(show(*slots_[slot].id, slots_[slot].room.first(length(slot))));
    }
  }
  give_up();
  return {};
}

bool is_in_memory(const Source& source, SampleId id) {
  struct statfs system {};
  const Extent extent = source.locate(id);
  if (extent.store != nullptr || ::fstatfs(extent.root, &system) != 0) return false;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

bool reads_direct(const Source& source, SampleId id) {
  const Extent extent = source.locate(id);
  if (extent.store != nullptr) return false;
  const auto file = open_below(extent.root, extent.path, O_DIRECT);
  if (!file) return false;
  alignas(kBlock) std::array<std::byte, kBlock> block;
  return ::pread(file->get(), block.data(), block.size(), 0) > 0;
}

std::optional<bool> drop_from_page_cache(const Source& source, SampleId id) {
  const Extent extent = source.locate(id);
  if (extent.store != nullptr) return false;
  const auto file = open_below(extent.root, extent.path);
  if (!file) return false;
  const auto offset = static_cast<off_t>(extent.offset);
  const auto length = static_cast<off_t>(extent.length);
  if (::posix_fadvise(file->get(), offset, length, POSIX_FADV_DONTNEED) != 0) return false;
  // Its last whole page: what stands around a range of a shard may stay.
  const off_t at = (offset + length) / static_cast<off_t>(kBlock) * static_cast<off_t>(kBlock) - 1;
  if (at < offset) return std::nullopt;
  std::byte byte{};
  const iovec into{&byte, 1};
  const ssize_t got = ::preadv2(file->get(), &into, 1, at, RWF_NOWAIT);
  if (got == 1) return false;
  return got < 0 && errno == EAGAIN ? std::optional(true) : std::nullopt;
}

}  // namespace foreload
