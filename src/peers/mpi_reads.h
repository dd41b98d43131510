// MpiReads: samples on their way from other hosts' arenas into the desk's pieces. Many at once, at most kPerHost from
// one host, so that one that does not answer holds up nobody else. MPI's thread.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "peers/mpi_desk.h"
#include "peers/mpi_job.h"
#include "tier/shared_arena.h"

namespace foreload {

class MpiReads {
 public:
  static constexpr unsigned kPerHost = 16;
  static constexpr unsigned kMostHosts = 16;  // that are read from at the same time

  static unsigned most_flights(HostIndex hosts);

  // Both must outlive it.
  MpiReads(MpiJob& job, MpiDesk& desk);

  bool step();  // takes asks, goes on with what came; something did
  // Asks hosts that let a read wait to look more often.
  void hurry(Time now);
  void drain();  // no flight takes another get
  // Nothing is written to the want's memory any more. False: a get that does is under way; it will land.
  bool cancel(std::uint64_t serial);
  std::size_t flying() const { return flights_.size() - free_.size(); }
  bool waits() const { return flying() > roomless_.size(); }  // for the network

 private:
  enum class Stage { kSlot, kRoom, kData, kAgain };
  struct Flight {
    MpiAsk ask;
    MpiDirectory::Arena* arena = nullptr;
    Stage stage = Stage::kSlot;
    std::array<std::byte, SlotCopy::kBytes> copy{};
    SlotCopy slot;
    std::span<std::byte> piece;
    bool in_place = false;  // the get goes to where the sample belongs, and not to a piece
    bool cancelled = false;
    Bytes done = 0;
    Bytes got = 0;  // by the last get of bytes
    Time since{};   // its get was begun
  };
  // Of one host.
  struct Queue {
    std::deque<MpiAsk> asks;
    unsigned flying = 0;
    bool warned = false;
    bool lags = false;     // a get of it has not ended at once
    bool at_once = false;  // gets of samples end at once
    Time hurried{};
  };

  bool begin(HostIndex host);
  void go(std::size_t index);
  bool get(std::size_t index);
  bool advance(std::size_t index);
  bool take_room(std::size_t index);
  std::span<std::byte> target(Flight& flight) const;
  bool test_all();
  bool has_ended(std::size_t index, int code);
  void land(std::size_t index, bool last);
  void end(std::size_t index, PeerResult result);
  void finish(std::size_t index);

  MpiJob& job_;
  MpiDesk& desk_;
  std::vector<Flight> flights_;
  std::vector<MPI_Request> requests_;  // of the flights
  std::vector<std::size_t> free_;
  std::vector<Queue> queues_;
  std::vector<HostIndex> active_;  // hosts whose queues are not empty
  std::deque<std::size_t> roomless_;
  bool draining_ = false;
  std::vector<MpiAsk> asks_;
  std::vector<int> ended_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace foreload
