// A rewritten file may be shorter than its room; the rest is filled with zeros, which stand behind the end-of-image
// marker and which no decoder looks at. So no length has to be kept.
#include "pipeline/rewriter.h"

#include <algorithm>
#include <cstring>

#include "prep/jpeg.h"
#include "prep/jpeg_layout.h"

namespace foreload {

void Rewriter::offer(SampleId id, std::span<const std::byte> bytes) {
  if (!parts_.arena.is_home(id)) return;
  {
    MutexLock lock(mutex_);
    if (settled_.empty() || settled_[id] || offers_.size() == kMostOffers) return;
  }
  const bool useful = is_jpeg(bytes) && !parse_jpeg_layout(bytes).ok();
  MutexLock lock(mutex_);
  if (useful && (settled_[id] || offers_.size() == kMostOffers)) return;
  settled_[id] = true;
  if (useful) offers_.push_back(id);
}

bool Rewriter::has_offers() const {
  MutexLock lock(mutex_);
  return !offers_.empty();
}

std::optional<SampleId> Rewriter::take() {
  MutexLock lock(mutex_);
  if (offers_.empty()) return std::nullopt;
  const SampleId id = offers_.front();
  offers_.pop_front();
  return id;
}

void Rewriter::postpone(SampleId id) {
  MutexLock lock(mutex_);
  settled_[id] = false;
}

bool Rewriter::step(JpegRewriter& tool) {
  const auto id = take();
  if (!id) return false;
  auto lease = parts_.arena.lease(*id, parts_.source.length(*id));
  if (!lease) {
    postpone(*id);
    return true;
  }
  const auto size = jpeg_dimensions(lease->bytes());
  if (!size) return true;
  const Bytes needed = JpegRewriter::memory(*size, lease->bytes().size());
  if (!parts_.scratch.try_take(needed)) {
    postpone(*id);
    return true;
  }
  if (!rewrite(tool, *id, std::move(*lease))) postpone(*id);
  tool.trim();
  parts_.scratch.give(needed);
  return true;
}

// False: not now; somebody reads the sample, or memory is short. True: it is settled, if only as it was.
bool Rewriter::rewrite(JpegRewriter& tool, SampleId id, Lease lease) {
  const std::size_t length = lease.bytes().size();
  const auto twin = tool.rewrite(lease.bytes(), parts_.limits, parts_.arena.room(length));
  if (!twin) return twin.error().code != Code::kNoMemory;
  lease = Lease();
  const auto room = parts_.arena.begin_change(id, length);
  if (!room) return false;
  std::memcpy(room->data(), twin->data(), twin->size());
  std::ranges::fill(room->subspan(twin->size()), std::byte{0});
  parts_.arena.end_change(id);
  ++rewritten_;
  return true;
}

}  // namespace foreload
