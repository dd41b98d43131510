#include <algorithm>

#include "base/futex.h"
#include "host/control.h"
#include "host/control_layout.h"

namespace foreload {
namespace {

constexpr Duration kCoreTime = std::chrono::seconds(1);  // longer than a sample takes

// A time that another process wrote: longer ago than kCoreTime, or as far in the future.
bool is_idle(std::int64_t renewed, Time now) {
  constexpr auto kLimit = static_cast<std::uint64_t>(kCoreTime.count());
  return static_cast<std::uint64_t>(now.count()) - static_cast<std::uint64_t>(renewed) + kLimit > 2 * kLimit;
}

}  // namespace

std::uint32_t Control::version() const {
  return block().version;
}

void Control::wait_for_version(std::uint32_t seen, Time deadline) const {
  futex_wait(block().version, seen, deadline);
}

void Control::announce() {
  ++block().version;
  futex_wake_all(block().version);
}

unsigned Control::cores() const {
  return std::clamp(block().cores, 1u, kMostCores);
}

unsigned Control::cores_in_use(Time now) const {
  unsigned count = 0;
  for (unsigned i = 0; i < cores(); ++i) {
    const CoreEntry& core = block().core_table[i];
    if (ClaimWord::unpack(core.word.load()).phase != 0 && !is_idle(core.renewed.load(), now)) ++count;
  }
  return count;
}

WorkSignal& Control::work_signal() const {
  return block().work;
}
WorkSignal& Control::core_signal() const {
  return block().core;
}
WorkSignal& Control::peer_signal() const {
  return block().peer;
}

std::optional<Control::Core> Control::take_core(Time now) {
  for (unsigned i = 0; i < cores(); ++i) {
    CoreEntry& core = block().core_table[i];
    std::uint64_t seen = core.word.load();
    const ClaimWord before = ClaimWord::unpack(seen);
    if (before.phase != 0 && !is_idle(core.renewed.load(), now)) continue;
    const ClaimWord mine{.phase = 1,
                         .member = self_->index,
                         .member_generation = self_->generation,
                         .generation = static_cast<std::uint16_t>(before.generation + 1)};
    core.renewed = now.count();
    if (core.word.compare_exchange_strong(seen, mine.packed())) return Core{i, mine.packed()};
  }
  return std::nullopt;
}

bool Control::renew(Core& core, Time now) {
  CoreEntry& entry = block().core_table[core.index];
  if (entry.word.load() != core.word) return false;
  entry.renewed = now.count();
  return true;
}

void Control::give_back(const Core& core) {
  std::uint64_t mine = core.word;
  const ClaimWord free{.generation = ClaimWord::unpack(mine).generation};
  if (block().core_table[core.index].word.compare_exchange_strong(mine, free.packed())) block().core.raise();
}

}  // namespace foreload
