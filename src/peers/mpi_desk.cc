#include "peers/mpi_desk.h"

#include "base/futex.h"

namespace foreload {
namespace {

constexpr std::size_t kShelf = 4;  // landings that are shown together: showing wakes somebody

void bump(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  futex_wake_all(word);
}

}  // namespace

void MpiDesk::ask(std::span<const MpiAsk> asks) {
  {
    MutexLock lock(mutex_);
    asks_.insert(asks_.end(), asks.begin(), asks.end());
  }
  bump(poked_);
}

bool MpiDesk::call(const std::function<void()>& body) {
  Call call{body};
  {
    MutexLock lock(mutex_);
    if (closed_) return false;
    calls_.push_back(&call);
  }
  bump(poked_);
  MutexLock lock(mutex_);
  while (call.served == Served::kNotYet) served_.wait(mutex_);
  return call.served == Served::kDone;
}

void MpiDesk::end(const std::vector<Call*>& calls, Served how) {
  MutexLock lock(mutex_);
  for (Call* call : calls) call->served = how;
  served_.notify_all();
}

void MpiDesk::take(std::vector<MpiLanding>& landings) {
  MutexLock lock(mutex_);
  landings.insert(landings.end(), landings_.begin(), landings_.end());
  landings_.clear();
}

void MpiDesk::give_back(std::span<std::byte> bytes) {
  bool poke = false;
  {
    MutexLock lock(mutex_);
    free_.push_back(bytes.data());
    --landed_pieces_;
    // Not at the first: both threads would sleep and wake in turns.
    poke = starved_ && landed_pieces_ <= kMostLanded / 2;
    if (poke) starved_ = false;
  }
  if (poke) bump(poked_);
}

void MpiDesk::wait_landed(std::uint32_t seen, Time until) const {
  futex_wait(landed_, seen, until);
}

void MpiDesk::wake() {
  bump(landed_);
}

void MpiDesk::warn(std::string text) {
  MutexLock lock(mutex_);
  warnings_.push_back(std::move(text));
}

std::vector<std::string> MpiDesk::take_warnings() {
  MutexLock lock(mutex_);
  return std::exchange(warnings_, {});
}

bool MpiDesk::take_asks(std::vector<MpiAsk>& asks) {
  MutexLock lock(mutex_);
  asks.swap(asks_);
  return !asks.empty();
}

bool MpiDesk::serve_calls() {
  std::vector<Call*> calls;
  {
    MutexLock lock(mutex_);
    calls.swap(calls_);
  }
  for (Call* call : calls) {
    call->body();
    end({call}, Served::kDone);
  }
  return !calls.empty();
}

std::span<std::byte> MpiDesk::take_piece() {
  MutexLock lock(mutex_);
  starved_ = landed_pieces_ + shelf_.size() >= kMostLanded || (free_.empty() && pieces_.size() == kMostPieces);
  if (starved_) return {};
  if (free_.empty()) {
    pieces_.emplace_back(new std::byte[kPiece]);
    return {pieces_.back().get(), kPiece};
  }
  std::byte* piece = free_.back();
  free_.pop_back();
  return {piece, kPiece};
}

void MpiDesk::drop_piece(std::span<std::byte> piece) {
  MutexLock lock(mutex_);
  free_.push_back(piece.data());
}

void MpiDesk::land(const MpiLanding& landing) {
  shelf_.push_back(landing);
  if (shelf_.size() == kShelf) show_landings();
}

void MpiDesk::show_landings() {
  if (shelf_.empty()) return;
  {
    MutexLock lock(mutex_);
    landings_.insert(landings_.end(), shelf_.begin(), shelf_.end());
    for (const MpiLanding& landing : shelf_) landed_pieces_ += landing.bytes.empty() ? 0 : 1;
  }
  shelf_.clear();
  bump(landed_);
}

void MpiDesk::rest(std::uint32_t seen, Time until) const {
  futex_wait(poked_, seen, until);
}

void MpiDesk::close() {
  std::vector<Call*> calls;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    calls.swap(calls_);
  }
  end(calls, Served::kNobody);
}

void MpiDesk::keep_pieces() {
  MutexLock lock(mutex_);
  for (auto& piece : pieces_) (void)piece.release();
}

}  // namespace foreload
