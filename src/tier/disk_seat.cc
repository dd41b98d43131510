#include "tier/disk_seat.h"

#include <filesystem>
#include <system_error>

namespace foreload {

void DiskSeat::sit(MemberId self, DiskStore* store) {
  std::error_code failed;  // then it has no path that others know
  const auto folder = store != nullptr ? std::filesystem::absolute(store->path(), failed) : std::filesystem::path();
  sits_ = board_.sit(seat_, self, failed ? "" : folder.string());
  if (sits_ && store != nullptr) store->tell(this);
}

void DiskSeat::stop_taking() {
  if (sits_) board_.stop_taking(seat_);
}

void DiskSeat::leave() {
  stop_taking();
  sits_ = false;
}

// What another one has already stays its: one place is enough.
void DiskSeat::added(SampleId id, Bytes offset, std::uint64_t content) {
  if (is_home(id) || !has_beside(id)) board_.add(id, {.seat = seat_, .offset = offset, .hash = content});
}

bool DiskSeat::has_beside(SampleId id) const {
  const auto place = board_.find(id);
  return place && (place->seat != seat_ || !sits_);
}

std::optional<DiskSeat::Beside> DiskSeat::find_beside(SampleId id) {
  const auto place = board_.find(id);
  if (!place || (place->seat == seat_ && sits_)) return std::nullopt;
  auto file = files_.file(board_, place->seat);
  if (file == nullptr) return std::nullopt;
  return Beside{std::move(file), *place};
}

}  // namespace foreload
