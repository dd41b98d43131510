// Pipeline: starts and stops the fetcher and the workers over a ring and a tier stack. Decides nothing.
// start() and stop() belong to one thread.
#pragma once

#include <memory>
#include <vector>

#include "base/thread.h"
#include "pipeline/fetcher.h"
#include "pipeline/preparer.h"
#include "pipeline/rewriter.h"
#include "pipeline/scratch_pool.h"
#include "pipeline/work.h"

namespace foreload {

// The workers of a host serve all its streams; without one a pipeline has its own.
struct PipelineParts {
  const Stream& stream;
  const Source& source;
  Arena& arena;
  TierStack& tiers;
  Ring& ring;
  const Chain& chain;
  DimensionTable& dimensions;
  EventRecord* record;  // may be null
};

struct PipelineOptions {
  std::uint64_t seed = 0;
  OnError on_error = OnError::kFail;
  Limits limits{};
  Bytes longest_sample = 0;  // longer ones do not fit the memory budget
  Bytes scratch = 0;
  unsigned threads = 1;  // 0: others prepare
  Rewrite rewrite = Rewrite::kOff;
  std::uint64_t batch = 1;  // samples per ring slot at most
  Bytes hold = 0;           // of transit, for samples whose echo is to come
  // Nobody else can use a part, so samples are read whole where one may be wanted twice: by a repeat, or as a
  // substitute that can not wait for the room of a later sample.
  bool partial_reads = false;
  bool only_fill = false;  // read nothing but what is kept
};

class Pipeline {
 public:
  Pipeline(const PipelineParts& parts, const PipelineOptions& options);
  ~Pipeline();  // stops

  // Fails, with nothing running, when the machine gives no more threads. REQUIRES: stopped.
  Status start(std::uint64_t number);
  void stop();  // ends all threads; what was prepared ahead is dropped

  void slot_freed() { parts_.tiers.wake(); }  // any thread
  std::vector<Quarantined> quarantine() const { return quarantine_.list(); }
  void note_replaced(Quarantined bad) { (void)quarantine_.add(std::move(bad)); }  // by another job
  const Filling& filling() const { return filling_; }
  std::uint64_t rewritten() const { return rewriter_.rewritten(); }

 private:
  // The one stream of this process.
  class OwnBoard : public PrepBoard {
   public:
    explicit OwnBoard(Pipeline& pipeline);
    std::optional<PrepTask> claim(unsigned worker) override;
    void settled(unsigned worker, const PrepTask& task, bool bad) override;
    std::uint32_t signal() const override { return stream_.ring.work_signal(); }
    bool wait(unsigned worker, std::uint32_t seen, Time until) override;
    bool stopped() const override { return stream_.ring.stopped(); }

   private:
    Pipeline& pipeline_;
    PrepStream stream_;
  };

  Status start_threads(std::uint64_t number);

  PipelineParts parts_;
  PipelineOptions options_;
  Filling filling_;
  WorkTable works_;
  ScratchPool scratch_;
  Quarantine quarantine_;
  Rewriter rewriter_;
  IdleWork idle_;
  OwnBoard board_;
  Preparer preparer_;
  std::unique_ptr<Fetcher> fetcher_;
  std::vector<Thread> threads_;
};

}  // namespace foreload
