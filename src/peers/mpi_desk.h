// MpiDesk: over it MPI's thread gets its work and hands out what came: asks and calls one way, landings the other.
// Samples land in pieces of memory that belong to the desk. Any thread; only MPI's blocks, in rest().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "peers/peers.h"

namespace foreload {

struct MpiAsk {
  std::uint64_t serial = 0;  // the caller's
  HostIndex host = 0;
  PeerKey key{};
  SampleId id = 0;
  std::span<std::byte> into{};  // see MpiReads::cancel
  Time deadline{};              // afterwards it is not begun any more
};

// A part of a sample; without bytes: what became of it, or that all of it is where it belongs.
struct MpiLanding {
  std::uint64_t serial = 0;
  std::span<std::byte> bytes{};  // at the start of a piece: to be given back
  Bytes at = 0;                  // in the sample
  bool last = true;
  PeerResult result = PeerResult::kHere;
  std::uint64_t hash = 0;  // of the whole sample; with its last part
};

class MpiDesk {
 public:
  static constexpr Bytes kPiece = 256_KiB;
  static constexpr unsigned kMostPieces = 272;  // one for every read, and some that are being copied
  // Of these: landed, and not given back. Few, so that a core's cache still has them when they are copied.
  static constexpr unsigned kMostLanded = 8;

  MpiDesk() = default;
  MpiDesk(const MpiDesk&) = delete;
  MpiDesk& operator=(const MpiDesk&) = delete;

  void ask(std::span<const MpiAsk> asks);
  // Runs it in MPI's thread, and waits until it is done; false: that thread has ended.
  bool call(const std::function<void()>& body);
  void take(std::vector<MpiLanding>& landings);
  void give_back(std::span<std::byte> bytes);  // of a landing
  // A landing or wake() after landed() was read ends wait_landed() of that value.
  std::uint32_t landed() const { return landed_.load(std::memory_order_acquire); }
  void wait_landed(std::uint32_t seen, Time until) const;
  void wake();
  std::vector<std::string> take_warnings();
  void warn(std::string text);

  // For MPI's thread.
  bool take_asks(std::vector<MpiAsk>& asks);
  bool serve_calls();
  std::span<std::byte> take_piece();            // empty: too many are in use
  void drop_piece(std::span<std::byte> piece);  // it does not land
  void land(const MpiLanding& landing);
  void show_landings();
  // Anything above after poked() was read ends rest() of that value.
  std::uint32_t poked() const { return poked_.load(std::memory_order_acquire); }
  void rest(std::uint32_t seen, Time until) const;
  void close();        // nothing is served any more
  void keep_pieces();  // for ever: something may still be written to them

 private:
  enum class Served { kNotYet, kDone, kNobody };
  struct Call {
    const std::function<void()>& body;
    Served served = Served::kNotYet;  // guarded by mutex_
  };

  void end(const std::vector<Call*>& calls, Served how);

  std::atomic<std::uint32_t> poked_{0};
  std::atomic<std::uint32_t> landed_{0};
  std::vector<MpiLanding> shelf_;  // of MPI's thread: not shown yet

  Mutex mutex_;
  CondVar served_;
  bool closed_ FORELOAD_GUARDED_BY(mutex_) = false;
  std::vector<MpiAsk> asks_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<Call*> calls_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<MpiLanding> landings_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<std::byte[]>> pieces_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::byte*> free_ FORELOAD_GUARDED_BY(mutex_);  // the last was used last: caches have it
  std::size_t landed_pieces_ FORELOAD_GUARDED_BY(mutex_) = 0;
  bool starved_ FORELOAD_GUARDED_BY(mutex_) = false;  // a piece was asked for in vain
  std::vector<std::string> warnings_ FORELOAD_GUARDED_BY(mutex_);
};

}  // namespace foreload
