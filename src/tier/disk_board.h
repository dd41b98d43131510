// DiskBoard: where the learners of a host say what their disk caches hold, for each other and for their agent, which
// serves other hosts. One region without pointers. Every learner has a seat: where its files are, whether it takes
// samples, and what others want of it. A sample that is at home on this host's disks belongs to one seat from the
// beginning. What stands here may be wrong at any moment, because bytes come and go: whoever reads them compares their
// hash. Others are not trusted with places: all is bounded before it is used. Any thread, never blocks.
//
//   [ header ][ seats ][ slot table: N × 16 bytes ]
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/claim_word.h"
#include "base/files.h"
#include "base/mutex.h"
#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class DiskBoard {
 public:
  static constexpr std::uint32_t kMostSeats = 250;
  using Seat = std::uint32_t;

  static Bytes region_bytes(std::uint64_t samples, std::uint32_t seats);
  // `home(id)`: on whose disk the sample is at home; nothing: on none. REQUIRES: zeroed memory of region_bytes(), 1 …
  // kMostSeats seats.
  static void format(std::span<std::byte> memory, std::uint64_t samples, std::uint32_t seats, Time now,
                     const std::function<std::optional<Seat>(SampleId)>& home);
  // kInvalid: it was not formatted. The memory outlives it. `is_alive` tells of any member.
  static Result<DiskBoard> open(std::span<std::byte> memory, std::function<bool(MemberId)> is_alive);

  std::uint64_t samples() const { return samples_; }
  std::uint32_t seats() const { return seats_; }

  // Who has the seat from now on, and the folder of its cache; empty: it has none. What the one before had is
  // forgotten. False: it has none, and another loader, which lives, sits there.
  bool sit(Seat seat, MemberId self, const std::string& folder);
  void stop_taking(Seat seat);  // its disk is full or can not be written to, or nobody is there to do so
  // Empty: there is none. `life` is another number each time that somebody sits down.
  std::string folder(Seat seat, std::uint32_t& life) const;

  // REQUIRES, in all: id < samples().
  std::optional<Seat> home(SampleId id) const;
  struct Place {
    Seat seat = 0;
    Bytes offset = 0;  // in its data file
    std::uint64_t hash = 0;

    bool operator==(const Place&) const = default;
  };
  std::optional<Place> find(SampleId id) const;
  void add(SampleId id, const Place& place);
  void remove(SampleId id, Seat seat);  // if it is there
  // The bytes there are not the sample's: whoever has that seat is to look.
  void doubt(SampleId id, const Place& place);

  // What is at home on a disk and not there yet: its seat is asked to bring it. False: it will not come.
  bool want(SampleId id, Time now);
  std::optional<SampleId> take_wanted(Seat seat);
  bool has_wanted(Seat seat) const;

 private:
  struct Header;
  struct SeatEntry;
  struct Slot;

  DiskBoard(std::span<std::byte> memory, std::uint64_t samples, std::uint32_t seats,
            std::function<bool(MemberId)> is_alive)
      : memory_(memory), samples_(samples), seats_(seats), is_alive_(std::move(is_alive)) {}
  Header& header() const;
  SeatEntry& entry(Seat seat) const;
  Slot& slot(SampleId id) const;
  void list(SeatEntry& seat, SampleId id);

  std::span<std::byte> memory_;
  std::uint64_t samples_;
  std::uint32_t seats_;
  std::function<bool(MemberId)> is_alive_;
};

// The data files of a board's seats, opened once. Any thread.
class DiskBoardFiles {
 public:
  // Null: there is none, or it can not be opened now.
  std::shared_ptr<const Descriptor> file(const DiskBoard& board, DiskBoard::Seat seat) FORELOAD_EXCLUDES(mutex_);

 private:
  struct Opened {
    std::uint32_t life = 0;
    std::shared_ptr<const Descriptor> file;
  };
  Mutex mutex_;
  std::map<DiskBoard::Seat, Opened> opened_ FORELOAD_GUARDED_BY(mutex_);
};

}  // namespace foreload
