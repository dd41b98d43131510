// Rings for tests: made, fed and read.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "pipeline/ring.h"

namespace foreload::ring_testing {

inline constexpr unsigned kOwn = Ring::kOwnReader;

inline std::shared_ptr<Ring> make(unsigned slots, std::uint64_t batch, Bytes sample_bytes = 8) {
  auto ring = Ring::create({.slots = slots, .batch = batch, .sample_bytes = sample_bytes});
  EXPECT_TRUE(ring.ok());
  (*ring)->begin(0);
  return std::move(*ring);
}

inline BatchPlan plan(std::uint64_t number, std::uint64_t count) {
  return {.number = number, .step = number, .first = number * count, .count = count};
}

inline std::optional<std::uint32_t> open(Ring& ring, const BatchPlan& plan) {
  const auto slot = ring.free_slot();
  if (slot) ring.open(*slot, plan);
  return slot;
}

inline void mark_ready(Ring& ring, RingItem item, Time now, SampleId id = 0, std::int64_t label = 0) {
  ring.mark_ready(item, {.id = id, .label = label}, {}, now);
}

inline void fill(Ring& ring, std::uint32_t slot, std::uint64_t count) {
  for (std::uint32_t i = 0; i < count; ++i) mark_ready(ring, {slot, i}, Time{1}, i, 7);
  while (const auto item = ring.claim()) {
    if (ring.finish(*item, {.busy = Duration{1}})) ring.publish(item->slot);
  }
}

// A feeder, workers and the readers of a ring at full speed, over so many batches. What a sample is made of says which
// one it is.
class Traffic {
 public:
  Traffic(unsigned slots, std::uint64_t batch, std::uint64_t batches)
      : ring_(make(slots, batch)), batch_(batch), batches_(batches) {}
  ~Traffic() { ring_->stop(); }

  Ring& ring() { return *ring_; }
  void start(unsigned workers) {
    threads_.emplace_back([this] { feed(); });
    for (unsigned i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }
  // Takes all batches from `from` on, `kept` at a time, and checks them.
  void read(unsigned reader, std::uint64_t from, std::uint64_t kept = 1) {
    std::deque<std::uint32_t> held;
    for (std::uint64_t n = from; n < batches_; ++n) {
      std::optional<std::uint32_t> slot;
      for (;;) {
        const std::uint32_t seen = ring_->published_signal();
        if ((slot = ring_->take(reader, n))) break;
        ASSERT_TRUE(ring_->wait_for_batch(reader, seen));
      }
      held.push_back(*slot);
      const auto* values = reinterpret_cast<const std::uint64_t*>(ring_->data(held.front()).data());
      const std::uint64_t number = n + 1 - held.size();
      for (std::uint64_t i = 0; i < batch_; ++i) ASSERT_EQ(values[i], number * batch_ + i);
      if (held.size() < kept) continue;
      ring_->release(reader, held.front());
      held.pop_front();
    }
    for (const std::uint32_t slot : held) ring_->release(reader, slot);
  }

 private:
  void feed() {
    std::mt19937 random(7);
    std::vector<std::uint32_t> order(batch_);
    std::iota(order.begin(), order.end(), 0);
    for (std::uint64_t n = 0; n < batches_;) {
      const auto slot = open(*ring_, plan(n, batch_));
      if (!slot) {
        std::this_thread::yield();
        continue;
      }
      std::shuffle(order.begin(), order.end(), random);
      for (const std::uint32_t i : order) mark_ready(*ring_, {*slot, i}, Time{1});
      ++n;
    }
  }
  void work() {
    for (;;) {
      const std::uint32_t seen = ring_->work_signal();
      if (const auto item = ring_->claim()) {
        const std::uint64_t value = ring_->position(*item);
        std::memcpy(ring_->tensor(*item).data(), &value, sizeof value);
        if (ring_->finish(*item, {})) ring_->publish(item->slot);
      } else if (!ring_->wait_for_work(seen, kNever)) {
        return;
      }
    }
  }

  std::shared_ptr<Ring> ring_;
  std::uint64_t batch_;
  std::uint64_t batches_;
  std::vector<std::jthread> threads_;
};

}  // namespace foreload::ring_testing
