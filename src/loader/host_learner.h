// For tests: loaders in a host, in this process or in one of their own, whose streams are compared with the reference.
#pragma once

#include <algorithm>
#include <string>

#include "host/host_testing.h"
#include "loader/ledger.h"

namespace foreload {

inline LoaderOptions in_host(const Ledger& ledger, const std::string& host, Bytes memory = 256_MiB) {
  LoaderOptions options = ledger.options(8);
  options.host = host;
  options.memory = memory;
  return options;
}

// What this learner must see of the reference.
inline Seen share_of(const Loader& loader, const LoaderOptions& options, std::uint64_t samples, Epoch epochs) {
  const Seen all = reference(samples, options, epochs);
  Seen mine;
  for (Epoch e = 0; e < epochs; ++e) {
    for (std::uint64_t step = 0; step < loader.batches_per_epoch(); ++step) {
      for (const Position p : loader.positions(e, step)) mine[{e, p}] = all.at({e, p});
    }
  }
  return mine;
}

// What a host has taken of its budget and its tables.
struct Taken {
  std::size_t objects = 0;
  Bytes reserved = 0;
  bool operator==(const Taken&) const = default;
};

inline Taken taken(const Control& control) {
  Taken all{.objects = control.objects().size()};
  for (const ObjectInfo& object : control.objects()) all.reserved += object.reserved;
  for (const MemberInfo& member : control.members()) all.reserved += member.reserved;
  return all;
}

// Workers let go of a stream when they look next.
inline bool comes_to(const Control& control, const Taken& wanted) {
  const Time until = now() + std::chrono::seconds(10);
  while (taken(control) != wanted && now() < until) ::usleep(2'000);
  return taken(control) == wanted;
}

struct Lesson {
  std::uint64_t samples = 0;  // of the dataset
  Epoch epochs = 1;
  Duration step{};  // what the learner does with a batch
};

// A learner: says 3 when it is there, reads epochs, says 1 after each when all was right, with what came from the
// source; and 2 at the end.
inline HostChild learner(const LoaderOptions& options, const Lesson& lesson) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    auto opened = Loader::open(options);
    if (!opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      return tell({.what = -1});
    }
    Loader& loader = *opened;
    tell({.what = 3});
    const Seen expected = share_of(loader, options, lesson.samples, lesson.epochs);
    Seen seen;
    for (Epoch e = 0; e < lesson.epochs; ++e) {
      for (std::uint64_t n = 0; n <= loader.batches_per_epoch(); ++n) {
        if (!read_epoch(loader, seen, 1)) return tell({.what = -2});
        if (lesson.step != Duration{}) ::usleep(static_cast<useconds_t>(lesson.step.count() / 1000));
      }
      const EpochStats stats = loader.stats().epochs.back();
      const bool right = std::ranges::includes(expected, seen) && !testing::Test::HasFailure();
      tell({.what = right ? 1 : -3, .numbers = {stats.source_bytes, stats.samples, seen.size()}});
    }
    if (seen != expected) tell({.what = -4});
    tell({.what = 2});
    wait_for_end(until);
  });
}

// The bytes that it read from the source, if all epochs were right; fails the test otherwise.
inline Bytes finish_epochs(HostChild& learner, Epoch epochs, Duration patience = std::chrono::seconds(60)) {
  Bytes source = 0;
  for (Epoch e = 0; e < epochs; ++e) {
    const auto told = learner.next(patience);
    EXPECT_TRUE(told) << "no word of epoch " << e;
    if (!told) return source;
    EXPECT_EQ(told->what, 1) << "epoch " << e;
    source += told->numbers[0];
  }
  const auto last = learner.next(patience);
  EXPECT_TRUE(last && last->what == 2);
  return source;
}

// Reads one epoch; whether it is the reference's.
inline bool reads_epoch(Loader& loader, const LoaderOptions& options, std::uint64_t samples, Epoch epoch) {
  Seen seen;
  if (!read_epoch(loader, seen)) return false;
  std::uint64_t expected = 0;
  for (std::uint64_t step = 0; step < loader.batches_per_epoch(); ++step)
    expected += loader.positions(epoch, step).size();
  const Schedule schedule = *make_schedule(options, samples);
  const bool right = std::ranges::all_of(seen, [&](const auto& one) {
    const auto& [epoch_seen, position] = one.first;
    return epoch_seen == epoch && one.second == schedule.sample_at(epoch, position % schedule.size());
  });
  return right && seen.size() == expected && !testing::Test::HasFailure();
}

}  // namespace foreload
