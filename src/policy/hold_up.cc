#include "policy/hold_up.h"

#include <algorithm>
#include <cmath>

namespace foreload {

std::optional<unsigned> HoldUp::look(std::span<const ReaderAt> readers, std::uint64_t opened, bool full, Time now) {
  if (readers.size() < 2) {
    *this = HoldUp{};
    return std::nullopt;
  }
  const auto order = [](const ReaderAt& r) { return std::pair(r.next, r.reader); };
  const ReaderAt& foremost = *std::ranges::max_element(readers, {}, order);
  const ReaderAt& hindmost = *std::ranges::min_element(readers, {}, order);
  const bool waits = std::ranges::any_of(
      readers, [&](const ReaderAt& reader) { return reader.waiting && reader.next == foremost.next; });
  if (last_ != Time{} && now > last_) {
    const Duration step = std::clamp(foremost.step, Duration{}, kLeastMemory * 12);
    const Duration memory = std::max(kLeastMemory, step * kSteps);
    const double faded = std::exp(-static_cast<double>((now - last_).count()) / static_cast<double>(memory.count()));
    share_ = share_ * faded + (held_up_ ? 1 - faded : 0);
  }
  last_ = now;
  held_up_ = full && waits && foremost.next >= opened;
  if (!held_up_ || share_ <= kMostShare) return std::nullopt;
  share_ = 0;
  return hindmost.reader;
}

}  // namespace foreload
