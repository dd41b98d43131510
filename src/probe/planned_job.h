// PlannedJob: a job as its loader would be opened, without opening it, so that nothing is read ahead and no cache is
// filled: what of the dataset its memory would keep, with which budget it would keep more, and its setup for the model.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "lab/model.h"
#include "plan/stream.h"
#include "prep/chain.h"

namespace foreload {

class PlannedJob {
 public:
  // Opens the dataset and checks the options as Loader::open would. `options.workers` must not be 0.
  static Result<PlannedJob> open(const LoaderOptions& options);

  const Source& source() const { return *source_; }
  const LoaderOptions& options() const { return options_; }
  const std::vector<Transform>& chain() const { return chain_options_.transforms; }  // given, or chosen by the data
  bool is_image() const { return is_image_; }
  Form form() const;
  unsigned threads() const { return threads_; }  // of one learner
  unsigned learners() const;                     // on this machine
  Bytes budget() const { return budget_; }       // of one learner

  // The setup for the model. `free`: memory of the machine that this job may use, and what it leaves the page cache.
  JobSetup setup(Bytes free) const;
  // Bytes of samples that one learner would keep with this budget, if it keeps any; nothing: it is too small to load
  // anything.
  std::optional<Bytes> kept(Bytes budget) const;
  // Room for homes with the budget that the job has, and what a sample takes of it; 0: it can not be kept. The
  // placement of a loader is planned by these.
  Bytes room() const { return room_; }
  Bytes footprint(SampleId id) const;
  // The smallest budget of a learner that keeps so many; what the machine does not have is extrapolated.
  Bytes budget_for(Bytes kept) const;
  // The same of all learners of this machine: each has its own, unless they share one.
  Bytes machine_budget_for(Bytes kept) const { return caches() * budget_for(kept); }

 private:
  PlannedJob(LoaderOptions options, std::unique_ptr<Source> source, ChainOptions chosen, Chain chain)
      : options_(std::move(options)),
        source_(std::move(source)),
        chain_options_(std::move(chosen)),
        chain_(std::move(chain)) {}
  double kept_share(Bytes home) const;
  unsigned caches() const { return options_.host.empty() ? learners() : 1; }  // on this machine

  LoaderOptions options_;
  std::unique_ptr<Source> source_;
  ChainOptions chain_options_;
  Chain chain_;
  std::optional<Stream> stream_;
  unsigned threads_ = 1;
  Bytes budget_ = 0;
  Bytes room_ = 0;
  Bytes longest_ = 0;    // sample that is kept
  bool growth_ = false;  // homes have room for samples that are coded again
  bool is_image_ = false;
};

}  // namespace foreload
