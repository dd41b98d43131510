#include "peers/mpi_desk.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(MpiDeskTest, PiecesAreBoundedAndTheLastOneGivenIsTheNextTaken) {
  MpiDesk desk;
  std::vector<std::span<std::byte>> pieces;
  for (auto piece = desk.take_piece(); !piece.empty(); piece = desk.take_piece()) pieces.push_back(piece);
  ASSERT_EQ(pieces.size(), MpiDesk::kMostPieces);
  desk.drop_piece(pieces[3]);
  desk.drop_piece(pieces[5]);
  EXPECT_EQ(desk.take_piece().data(), pieces[5].data());
  EXPECT_EQ(desk.take_piece().data(), pieces[3].data());
  const std::uint32_t seen = desk.poked();
  EXPECT_TRUE(desk.take_piece().empty());
  desk.land({.bytes = pieces[7].first(10)});
  desk.show_landings();
  desk.give_back(pieces[7].first(10));
  EXPECT_NE(desk.poked(), seen) << "somebody waits for it";
  const std::span<std::byte> again = desk.take_piece();
  EXPECT_EQ(again.data(), pieces[7].data());
  EXPECT_EQ(again.size(), MpiDesk::kPiece);
}

TEST(MpiDeskTest, WhenMuchHasLandedNothingIsReadUntilHalfOfItIsTaken) {
  MpiDesk desk;
  for (unsigned i = 0; i < MpiDesk::kMostLanded; ++i) desk.land({.serial = i, .bytes = desk.take_piece().first(1)});
  EXPECT_TRUE(desk.take_piece().empty());
  desk.show_landings();
  std::vector<MpiLanding> landings;
  desk.take(landings);
  ASSERT_EQ(landings.size(), MpiDesk::kMostLanded);
  const std::uint32_t seen = desk.poked();
  for (unsigned i = 0; i < MpiDesk::kMostLanded; ++i) {
    EXPECT_EQ(desk.poked() == seen, i < MpiDesk::kMostLanded / 2) << i;
    desk.give_back(landings[i].bytes);
  }
  EXPECT_FALSE(desk.take_piece().empty());
}

// The other side of the desk: serves calls and echoes asks until it is told to end.
void serve(MpiDesk& desk, const bool& stopping) {
  std::vector<MpiAsk> asks;
  while (!stopping) {
    const std::uint32_t seen = desk.poked();
    bool moved = desk.serve_calls();
    asks.clear();
    if (desk.take_asks(asks)) moved = true;
    for (const MpiAsk& ask : asks) desk.land({.serial = ask.serial});
    desk.show_landings();
    if (!moved) desk.rest(seen, now() + 10s);
  }
  desk.close();
}

TEST(MpiDeskTest, EveryAskLandsOnceAndNobodySleepsOverOne) {
  MpiDesk desk;
  bool stopping = false;
  std::jthread thread([&] { serve(desk, stopping); });
  std::vector<MpiLanding> landings;
  std::uint64_t serial = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<MpiAsk> asks(static_cast<std::size_t>(round % 20 + 1));
    for (MpiAsk& ask : asks) ask.serial = serial++;
    desk.ask(asks);
    while (landings.size() < serial) {
      const std::uint32_t seen = desk.landed();
      const std::size_t before = landings.size();
      desk.take(landings);
      if (landings.size() == before) desk.wait_landed(seen, now() + 10s);
    }
  }
  for (std::uint64_t i = 0; i < serial; ++i) ASSERT_EQ(landings[i].serial, i);
  EXPECT_TRUE(desk.call([&] { stopping = true; }));
}

TEST(MpiDeskTest, CallsRunInTheOtherThreadAndNoneWaitsForOneThatHasEnded) {
  MpiDesk desk;
  bool stopping = false;
  std::jthread thread([&] { serve(desk, stopping); });
  std::thread::id where;
  EXPECT_TRUE(desk.call([&] { where = std::this_thread::get_id(); }));
  EXPECT_EQ(where, thread.get_id());
  EXPECT_TRUE(desk.call([&] { stopping = true; }));
  thread.join();
  EXPECT_FALSE(desk.call([&] { ADD_FAILURE() << "nobody is there"; }));
}

}  // namespace
}  // namespace foreload
