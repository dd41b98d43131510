#include "loader/standby.h"

#include <fmt/format.h>

namespace foreload {

PrepLook Standby::see(const Ring& ring, Time now) const {
  const auto soonest = ring.soonest();
  PrepLook look{.now = now,
                .ready = soonest.has_value(),
                .late = soonest && (*soonest <= ring.pace().next || ring.published() == 0),
                .staffed = member_->control().anybody_prepares()};
  for (unsigned member = 0; member < kMostMembers; ++member) look.prepared += ring.prepared_by(member);
  return look;
}

std::optional<std::string> Standby::look(const Ring& ring, Time now) {
  if (now < next_look_) return std::nullopt;
  next_look_ = now + Standstill::kLook;
  const PrepLook seen = see(ring, now);
  if (!standstill_.lasts(seen)) return std::nullopt;
  const Status employed = workshop_->employ(workshop_->most());
  has_begun_ = employed.ok();
  if (std::exchange(has_warned_, true)) return std::nullopt;
  return warning(employed, seen.staffed);
}

std::string Standby::warning(const Status& employed, bool staffed) const {
  const std::string why =
      staffed ? fmt::format("for {} s nobody in host \"{}\" has prepared anything for this loader",
                            Standstill::kSomebody / std::chrono::seconds(1), host_)
              : fmt::format("nobody in host \"{}\" prepares, and this loader was opened with workers 0", host_);
  if (!employed.ok()) return fmt::format("{}; this process can not either: {}", why, employed.error().message);
  return fmt::format("{}: preparing here. Start `foreload agent --host {}` before it, or give it workers", why, host_);
}

}  // namespace foreload
