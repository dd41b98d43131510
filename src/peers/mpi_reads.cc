// A flight reads its slot, then the sample's bytes, piece by piece, then the slot again. Equal slots mean that the
// bytes were the sample's all the time; whoever takes them from the desk compares them with the slot's hash.
// Every get is tested as soon as it is begun: between processes of one machine it has ended by then. Only such gets go
// straight to where the sample belongs: others could write there after the want has ended.
#include "peers/mpi_reads.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 300us;  // then the host seems to sleep
constexpr Duration kHurryAgain = 5ms;
constexpr Bytes kMostAtOnce = 16_MiB;  // nothing else is done meanwhile

}  // namespace

unsigned MpiReads::most_flights(HostIndex hosts) {
  return kPerHost * std::min<unsigned>(hosts, kMostHosts);
}

MpiReads::MpiReads(MpiJob& job, MpiDesk& desk)
    : job_(job),
      desk_(desk),
      flights_(most_flights(job.hosts())),
      requests_(flights_.size(), MPI_REQUEST_NULL),
      queues_(job.hosts()),
      ended_(flights_.size()),
      statuses_(flights_.size()) {
  for (std::size_t i = 0; i < flights_.size(); ++i) free_.push_back(flights_.size() - 1 - i);
}

bool MpiReads::step() {
  asks_.clear();
  bool moved = desk_.take_asks(asks_);
  for (const MpiAsk& ask : asks_) {
    Queue& queue = queues_[ask.host];
    if (queue.asks.empty()) active_.push_back(ask.host);
    queue.asks.push_back(ask);
  }
  if (test_all()) moved = true;
  for (std::size_t left = roomless_.size(); left > 0; --left) {
    const std::size_t index = roomless_.front();
    roomless_.pop_front();
    if (!take_room(index)) break;
    moved = true;
    go(index);
  }
  for (const HostIndex host : active_) {
    while (begin(host)) moved = true;
  }
  std::erase_if(active_, [&](HostIndex host) { return queues_[host].asks.empty(); });
  desk_.show_landings();
  return moved;
}

void MpiReads::drain() {
  draining_ = true;
  for (const std::size_t index : roomless_) end(index, PeerResult::kAbsent);
  roomless_.clear();
  for (Queue& queue : queues_) queue.asks.clear();
}

// False: nothing can be begun.
bool MpiReads::begin(HostIndex host) {
  Queue& queue = queues_[host];
  if (queue.asks.empty()) return false;
  const MpiAsk ask = queue.asks.front();
  const bool late = now() >= ask.deadline;
  if (!late && (queue.flying == kPerHost || free_.empty())) return false;
  queue.asks.pop_front();
  if (late) return true;  // whoever asked knows the time
  MpiDirectory::Arena* arena = job_.directory().acquire(host, ask.key);
  if (arena == nullptr) {
    desk_.land({.serial = ask.serial, .result = PeerResult::kRefused});
    return true;
  }
  const std::size_t index = free_.back();
  free_.pop_back();
  ++queue.flying;
  flights_[index] = {.ask = ask, .arena = arena};
  if (arena->has_slot(ask.id)) {
    go(index);
  } else {
    end(index, PeerResult::kWrong);
  }
  return true;
}

void MpiReads::go(std::size_t index) {
  while (get(index) && advance(index)) {
  }
}

std::span<std::byte> MpiReads::target(Flight& flight) const {
  if (flight.stage != Stage::kData) return flight.copy;
  const std::span<std::byte> rest = flight.ask.into.subspan(flight.done);
  if (flight.in_place) return rest.first(std::min<Bytes>(kMostAtOnce, rest.size()));
  return flight.piece.first(std::min(flight.piece.size(), rest.size()));
}

// Begins what the flight's stage needs. True: it has ended.
bool MpiReads::get(std::size_t index) {
  Flight& flight = flights_[index];
  if (flight.arena->leaving || draining_) {
    end(index, PeerResult::kAbsent);
    return false;
  }
  const bool data = flight.stage == Stage::kData;
  const Bytes offset = data ? flight.slot.offset + flight.done : SharedArena::slot_offset(flight.ask.id);
  const std::span<std::byte> into = target(flight);
  const auto from = static_cast<MPI_Aint>(flight.arena->note.address + offset);
  const auto size = static_cast<int>(into.size());
  int code = MPI_Rget(into.data(), size, MPI_BYTE, static_cast<int>(flight.ask.host), from, size, MPI_BYTE,
                      job_.window(), &requests_[index]);
  int ended = 1;
  if (code == MPI_SUCCESS) code = MPI_Test(&requests_[index], &ended, MPI_STATUS_IGNORE);
  Queue& queue = queues_[flight.ask.host];
  if (ended == 0) {
    queue.lags = true;
    queue.at_once = false;
    flight.since = now();
    return false;
  }
  if (data && !queue.lags) queue.at_once = job_.neighbours()[flight.ask.host];
  return has_ended(index, code);
}

bool MpiReads::has_ended(std::size_t index, int code) {
  if (code == MPI_SUCCESS) return true;
  requests_[index] = MPI_REQUEST_NULL;
  const HostIndex host = flights_[index].ask.host;
  if (!std::exchange(queues_[host].warned, true)) {
    desk_.warn(
        fmt::format("peer {} (MPI rank): a read failed: {}; its samples come from the source", host, mpi_text(code)));
  }
  end(index, PeerResult::kUnreachable);
  return false;
}

// The flight's get has ended. True: it needs another one.
bool MpiReads::advance(std::size_t index) {
  Flight& flight = flights_[index];
  switch (flight.stage) {
    case Stage::kSlot: {
      flight.slot = SlotCopy::parse(flight.copy);
      const PeerResult result = flight.arena->judge(flight.slot, flight.ask.into.size());
      if (result == PeerResult::kHere) return take_room(index);
      end(index, result);
      return false;
    }
    case Stage::kData:
      flight.got = target(flight).size();
      flight.done += flight.got;
      if (flight.done < flight.ask.into.size()) {
        if (!flight.in_place) land(index, false);
        return take_room(index);
      }
      flight.stage = Stage::kAgain;
      return true;
    case Stage::kAgain:
      if (SlotCopy::parse(flight.copy) != flight.slot) {
        end(index, PeerResult::kAbsent);
      } else {
        land(index, true);
        finish(index);
      }
      return false;
    case Stage::kRoom:
      break;
  }
  FORELOAD_CHECK(false, "without room nothing is read");
  return false;
}

bool MpiReads::take_room(std::size_t index) {
  Flight& flight = flights_[index];
  flight.in_place = queues_[flight.ask.host].at_once && !flight.cancelled;
  if (flight.in_place) {
    flight.stage = Stage::kData;
    return true;
  }
  flight.piece = desk_.take_piece();
  flight.stage = flight.piece.empty() ? Stage::kRoom : Stage::kData;
  if (flight.piece.empty()) roomless_.push_back(index);
  return !flight.piece.empty();
}

// What was got last.
void MpiReads::land(std::size_t index, bool last) {
  Flight& flight = flights_[index];
  desk_.land({.serial = flight.ask.serial,
              .bytes = flight.in_place ? std::span<std::byte>() : flight.piece.first(flight.got),
              .at = flight.done - flight.got,
              .last = last,
              .hash = flight.slot.hash});
  flight.piece = {};
}

bool MpiReads::test_all() {
  if (flying() == 0) return false;
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, ended_.data(), statuses_.data());
  if (count == MPI_UNDEFINED) return false;
  FORELOAD_CHECK(code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS, "requests are MPI's own");
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(ended_[static_cast<std::size_t>(i)]);
    const int how = code == MPI_SUCCESS ? code : statuses_[static_cast<std::size_t>(i)].MPI_ERROR;
    if (has_ended(index, how) && advance(index)) go(index);
  }
  return count > 0;
}

void MpiReads::end(std::size_t index, PeerResult result) {
  Flight& flight = flights_[index];
  if (!flight.piece.empty()) desk_.drop_piece(flight.piece);
  desk_.land({.serial = flight.ask.serial, .result = result});
  finish(index);
}

void MpiReads::finish(std::size_t index) {
  const Flight& flight = flights_[index];
  const HostIndex host = flight.ask.host;
  const std::uint64_t arena = flight.arena->note.serial;
  if (job_.directory().release(host, flight.arena)) job_.send(host, {.kind = MpiNote::kReleased, .serial = arena});
  --queues_[host].flying;
  free_.push_back(index);
}

bool MpiReads::cancel(std::uint64_t serial) {
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i].ask.serial != serial) continue;
    if (flights_[i].in_place && requests_[i] != MPI_REQUEST_NULL) return false;
    flights_[i].cancelled = true;
  }
  return true;
}

void MpiReads::hurry(Time now) {
  if (flying() == 0) return;
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    Queue& queue = queues_[flights_[i].ask.host];
    const bool waits = requests_[i] != MPI_REQUEST_NULL && now - flights_[i].since > kPatience;
    if (!waits || now - queue.hurried < kHurryAgain) continue;
    queue.hurried = now;
    job_.send(flights_[i].ask.host, {.kind = MpiNote::kHurry});
  }
}

}  // namespace foreload
