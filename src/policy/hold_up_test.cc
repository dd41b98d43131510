#include "policy/hold_up.h"

#include <gtest/gtest.h>

#include <array>

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSlots = 4;

// Two learners of one stream that is prepared at once; looked at every 10 ms for so long. Who is dismissed, and when.
struct Dismissal {
  std::optional<unsigned> reader;
  Time at{};
};

Dismissal play(Duration quick_step, Duration slow_step, Duration length) {
  HoldUp hold_up;
  std::array<ReaderAt, 2> readers{ReaderAt{.reader = 0, .step = quick_step}, ReaderAt{.reader = 1, .step = slow_step}};
  std::array<Time, 2> asks{Time(1s), Time(1s)};
  for (Time now(1s); now < Time(1s) + length; now += 10ms) {
    for (bool moved = true; moved;) {
      moved = false;
      const std::uint64_t hindmost = std::min(readers[0].next, readers[1].next);
      for (unsigned i = 0; i < 2; ++i) {
        readers[i].waiting = now >= asks[i];
        if (!readers[i].waiting || readers[i].next >= hindmost + kSlots) continue;
        ++readers[i].next;
        asks[i] = now + readers[i].step;
        readers[i].waiting = false;
        moved = true;
      }
    }
    const std::uint64_t opened = std::min(readers[0].next, readers[1].next) + kSlots;
    const bool full = std::max(readers[0].next, readers[1].next) >= opened;
    if (const auto reader = hold_up.look(readers, opened, full, now)) return {reader, now};
  }
  return {};
}

TEST(HoldUpTest, ReadersOfLikePaceStayTogether) {
  EXPECT_FALSE(play(100ms, 100ms, 60s).reader);
  EXPECT_FALSE(play(100ms, 120ms, 60s).reader) << "to wait a sixth of the time is cheaper than to prepare twice";
  EXPECT_FALSE(play(1s, 1200ms, 600s).reader);
}

TEST(HoldUpTest, OneThatIsMuchSlowerIsLeftBehind) {
  const Dismissal soon = play(100ms, 200ms, 60s);
  EXPECT_EQ(soon.reader, 1u);
  EXPECT_EQ(play(1s, 2s, 600s).reader, 1u);
  EXPECT_EQ(play(20ms, 1h, 60s).reader, 1u) << "one that is stopped";
  EXPECT_LT(play(20ms, 1h, 60s).at, Time(5s));
}

TEST(HoldUpTest, NobodyIsLeftBehindWhileTheRingHasRoom) {
  HoldUp hold_up;
  const std::array<ReaderAt, 2> readers{ReaderAt{.reader = 0, .next = 3, .waiting = true}, ReaderAt{.reader = 1}};
  for (Time now(1s); now < Time(60s); now += 10ms) {
    EXPECT_FALSE(hold_up.look(readers, 3, false, now));
    EXPECT_FALSE(hold_up.look(readers, 4, true, now)) << "what the foremost waits for is being prepared";
  }
}

TEST(HoldUpTest, OneReaderWaitsForNobody) {
  HoldUp hold_up;
  const std::array<ReaderAt, 1> reader{ReaderAt{.next = 3, .waiting = true}};
  for (Time now(1s); now < Time(60s); now += 10ms) EXPECT_FALSE(hold_up.look(reader, 3, true, now));
}

TEST(HoldUpTest, OneThatWaitsIsEnoughAlsoBesideOneThatPauses) {
  HoldUp hold_up;
  const std::array<ReaderAt, 3> readers{ReaderAt{.reader = 0, .next = 7},
                                        ReaderAt{.reader = 1, .next = 10, .waiting = true},
                                        ReaderAt{.reader = 2, .next = 10}};
  std::optional<unsigned> named;
  for (Time now(1s); now < Time(9s) && !named; now += 10ms) named = hold_up.look(readers, 10, true, now);
  EXPECT_EQ(named, 0u);
}

TEST(HoldUpTest, StepsThatAnotherProcessWroteMayBeAnything) {
  for (const Duration step : {Duration::min(), Duration::max()}) {
    HoldUp hold_up;
    const std::array<ReaderAt, 2> readers{ReaderAt{.reader = 0, .step = step},
                                          ReaderAt{.reader = 1, .next = 10, .waiting = true, .step = step}};
    std::optional<unsigned> named;
    for (Time now(1s); now < Time(1h) && !named; now += 1s) named = hold_up.look(readers, 10, true, now);
    EXPECT_EQ(named, 0u);
  }
}

TEST(HoldUpTest, WhenAllAreAtOneBatchTheFirstIsNamed) {
  HoldUp hold_up;
  const std::array<ReaderAt, 2> readers{ReaderAt{.reader = 0, .next = 3, .waiting = true},
                                        ReaderAt{.reader = 5, .next = 3, .waiting = true}};
  std::optional<unsigned> named;
  for (Time now(1s); now < Time(9s) && !named; now += 10ms) named = hold_up.look(readers, 3, true, now);
  EXPECT_EQ(named, 0u);
}

}  // namespace
}  // namespace foreload
