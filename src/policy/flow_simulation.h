// A loader under a virtual clock, for tests: storage, transit, ring, workers and a learner are modelled as plainly as
// possible, and every decision is asked of the policies that the pipeline asks: Pacer, soonest_needed(),
// should_rewrite(). Time passes from event to event; nothing is read and nobody sleeps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "policy/pacing.h"

namespace foreload {

struct FlowScene {
  // Storage: one link behind a latency.
  Duration latency = std::chrono::milliseconds(1);
  double bytes_per_second = 200e6;
  Bytes sample = 110'000;
  // The loader.
  std::uint64_t batch = 16;
  unsigned slots = 8;
  std::uint64_t transit = 256;  // samples
  unsigned workers = 2;
  Duration prep = std::chrono::microseconds(500);  // of one sample
  // The learner.
  Duration step{};
  std::uint64_t steps = 1000;
  std::function<Duration(std::uint64_t step)> pause{};  // beside the step
  // The data: is this sample of a batch in memory?
  std::function<bool(std::uint64_t step, std::uint64_t index)> cached = [](auto, auto) { return false; };
  // Work that nobody waits for, as much of it as there is time.
  bool fills = false;    // reads of the storage; they have room of their own
  Duration rewrite{};    // what one takes of a worker; 0: there are none
  bool unasked = false;  // background work asks nobody: what the decisions are compared with
};

struct FlowReport {
  std::vector<Duration> waits;         // of the learner, by step
  std::vector<Time> bytes_complete;    // by step
  std::vector<Time> published;         // by step
  std::vector<std::uint64_t> started;  // reads of the stream, by the step in which the learner was
  std::uint64_t filled = 0;
  std::uint64_t rewritten = 0;
  std::uint64_t stream_reads = 0;
  Duration elapsed{};    // until the learner had all
  Duration prep_idle{};  // of all workers together, rewriting included

  Duration wait_quantile(double p) const;
  Duration waited() const;
};

class FlowSimulation {
 public:
  explicit FlowSimulation(const FlowScene& scene);
  FlowReport run();

 private:
  enum class What { kRead, kFilled, kPrepared, kRewritten, kStepped, kLook };
  struct Event {
    What what{};
    std::uint64_t batch = 0;
    bool passing = false;  // it frees room in transit
    Time begun{};
    Time at{};
    std::uint64_t order = 0;  // of two at once the older comes first

    bool operator>(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  struct Batch {
    std::uint32_t ready = 0;    // bytes are here, nobody prepares them
    std::uint32_t passing = 0;  // of these, in transit
    std::uint64_t arrived = 0;
    std::uint64_t read = 0;  // of these, from storage
    std::uint64_t prepared = 0;
  };

  void handle(const Event& event);
  void turn();
  void open_slots();
  void ask_ahead();
  void start_reads();
  void fill();
  void give_work();
  void rewrite();
  void feed_learner();
  void read(const Event& event);
  void arrive(std::uint64_t batch);
  void later(Duration in, Event event);
  void look_again();
  std::vector<Bytes> lacking() const;

  FlowScene scene_;
  Pacer pacer_;
  FlowReport report_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t events_made_ = 0;
  Time now_{0};
  Time link_free_{0};
  std::vector<Batch> batches_;
  std::uint64_t open_end_ = 0;  // batches that got a slot
  std::uint64_t ask_step_ = 0;  // the sample that is asked for next
  std::uint64_t ask_index_ = 0;
  std::queue<std::uint64_t> waiting_;  // reads of the stream, by batch
  unsigned in_flight_ = 0;
  std::uint64_t filling_ = 0;  // of these, for nobody
  std::uint64_t in_transit_ = 0;
  unsigned busy_ = 0;  // workers
  unsigned rewriting_ = 0;
  std::uint64_t learner_ = 0;   // the batch that it has, or waits for
  std::optional<Time> hungry_;  // since then
  bool look_planned_ = false;
};

}  // namespace foreload
