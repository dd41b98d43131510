// Rewriter: makes cached JPEGs crop-addressable in their place, so that later epochs decode only their crops. Workers
// offer what they have just prepared, and take one of the offered samples when policy/rewriting says so. What does not
// fit the room of the original, or is no JPEG that can be rewritten, stays as it is. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "foreload/loader.h"
#include "pipeline/scratch_pool.h"
#include "prep/jpeg_rewrite.h"
#include "tier/arena.h"

namespace foreload {

struct RewriterParts {
  const Source& source;
  Arena& arena;
  ScratchPool& scratch;
  Limits limits;
};

class Rewriter {
 public:
  // One that is not enabled takes no offers and no memory.
  Rewriter(const RewriterParts& parts, bool enabled) : parts_(parts), settled_(enabled ? parts.source.size() : 0) {}

  static Bytes bytes_for(std::uint64_t samples) { return samples / 8 + kMostOffers * sizeof(SampleId); }

  // A sample was prepared from these bytes. Remembers it when a rewrite may be of use; quick.
  void offer(SampleId id, std::span<const std::byte> bytes) FORELOAD_EXCLUDES(mutex_);
  bool has_offers() const FORELOAD_EXCLUDES(mutex_);
  // Works on one offered sample. False: there is none.
  bool step(JpegRewriter& tool) FORELOAD_EXCLUDES(mutex_);
  std::uint64_t rewritten() const { return rewritten_; }

 private:
  static constexpr std::size_t kMostOffers = 4096;

  std::optional<SampleId> take() FORELOAD_EXCLUDES(mutex_);
  // Its turn comes again when it is prepared the next time.
  void postpone(SampleId id) FORELOAD_EXCLUDES(mutex_);
  bool rewrite(JpegRewriter& tool, SampleId id, Lease lease);

  RewriterParts parts_;
  std::atomic<std::uint64_t> rewritten_{0};
  mutable Mutex mutex_;
  std::deque<SampleId> offers_ FORELOAD_GUARDED_BY(mutex_);  // at most kMostOffers
  std::vector<bool> settled_ FORELOAD_GUARDED_BY(mutex_);    // offered, done, or of no use
};

}  // namespace foreload
