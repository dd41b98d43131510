// Preparer: the worker threads. Each claims the ready sample that is needed soonest, runs the chain straight into its
// place in the batch, and says how it went. Workers sleep while there is nothing to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>

#include "foreload/loader.h"
#include "pipeline/prep_board.h"
#include "pipeline/rewriter.h"
#include "pipeline/scratch_pool.h"
#include "policy/pace.h"
#include "policy/rewriting.h"

namespace foreload {

// What workers do when they have nothing to prepare.
struct IdleWork {
  Rewriter& rewriter;
  const Ring& ring;
  std::function<Pace()> pace;  // of the learner
  Rewrite mode = Rewrite::kOff;
  unsigned workers = 1;
  Epoch epochs = 0;  // 0: not known
};

class Preparer {
 public:
  // All must outlive it. `idle` may be null.
  Preparer(PrepBoard& board, ScratchPool& scratch, const IdleWork* idle)
      : board_(board), scratch_(scratch), idle_(idle) {}

  // A worker thread's body; returns when the board is stopped.
  void run(std::uint16_t worker);

 private:
  // What one worker thread owns.
  struct Tools {
    struct Runner {
      std::uint64_t stream = 0;
      ChainRunner runner;
    };
    std::list<Runner> runners{};             // the last used one is first
    std::optional<JpegRewriter> rewriter{};  // made when it is needed
    Epoch epoch = 0;                         // of the last sample
  };
  static ChainRunner& runner_of(Tools& tools, const PrepStream& stream);
  void prepare(Tools& tools, const PrepTask& task, std::uint16_t worker);
  // What became of a chance to do what nobody waits for.
  enum class Spare { kUsed, kNothingToDo, kNoTime };
  Spare rewrite_one(Tools& tools, bool idle);
  RewriteChance chance(const Tools& tools, bool idle) const;
  Status transform(ChainRunner& runner, const PrepTask& task, const RingWork& work);
  void complete(const PrepTask& task, std::uint16_t worker);

  PrepBoard& board_;
  ScratchPool& scratch_;
  const IdleWork* idle_;
  std::atomic<unsigned> rewriting_{0};          // workers
  std::atomic<Duration::rep> rewrite_cost_{0};  // on average; 0: not known
};

}  // namespace foreload
