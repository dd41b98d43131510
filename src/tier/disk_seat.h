// DiskSeat: a learner's seat at the board of its host's disks. It tells what its own cache holds, finds what the caches
// of others hold, and asks them for what is at home there. One thread asks; what the store tells comes from any.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/files.h"
#include "tier/disk_board.h"
#include "tier/disk_store.h"

namespace foreload {

class DiskSeat final : private DiskListener {
 public:
  DiskSeat(DiskBoard board, DiskBoard::Seat seat) : board_(std::move(board)), seat_(seat) {}

  const DiskBoard& board() const { return board_; }
  DiskBoard::Seat number() const { return seat_; }
  // This learner sits down, with its cache or without one. REQUIRES: the store does not work yet; it outlives this.
  void sit(MemberId self, DiskStore* store);
  void leave();        // what it has can still be read
  void stop_taking();  // its disk takes no more

  // On this learner's disk; on that of another learner of the host.
  bool is_home(SampleId id) const { return board_.home(id) == seat_; }
  bool is_home_beside(SampleId id) const { return board_.home(id).value_or(seat_) != seat_; }
  bool is_on_disk(SampleId id) const { return board_.find(id).has_value(); }  // on whose ever
  // Where another learner's cache has it; to be compared with the hash. The file is kept while it is read.
  struct Beside {
    std::shared_ptr<const Descriptor> file;
    DiskBoard::Place place;
  };
  bool has_beside(SampleId id) const;
  std::optional<Beside> find_beside(SampleId id);
  void doubt(SampleId id, const DiskBoard::Place& place) { board_.doubt(id, place); }
  // Another learner is asked to bring it to its disk. False: nobody will.
  bool ask_for(SampleId id, Time now) { return is_home_beside(id) && board_.want(id, now); }
  // What others want of this one.
  std::optional<SampleId> take_wanted() { return sits_ ? board_.take_wanted(seat_) : std::nullopt; }
  bool has_wanted() const { return sits_ && board_.has_wanted(seat_); }

 private:
  void added(SampleId id, Bytes offset, std::uint64_t content) override;
  void removed(SampleId id) override { board_.remove(id, seat_); }

  DiskBoard board_;
  DiskBoard::Seat seat_;
  DiskBoardFiles files_;
  std::atomic<bool> sits_{false};
};

}  // namespace foreload
