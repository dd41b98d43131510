#include "pipeline/pipeline.h"

#include <fmt/format.h>

#include "base/check.h"

namespace foreload {

Pipeline::Pipeline(const PipelineParts& parts, const PipelineOptions& options)
    : parts_(parts),
      options_(options),
      works_(parts.ring.slots(), options.batch),
      scratch_(options.scratch, options.threads),
      quarantine_(options.limits.replacements),
      rewriter_({parts.source, parts.arena, scratch_, options.limits}, options.rewrite != Rewrite::kOff) {}

Pipeline::~Pipeline() {
  stop();
}

Status Pipeline::start(std::uint64_t number) {
  FORELOAD_CHECK(threads_.empty(), "a pipeline is started once at a time");
  const std::uint64_t last = parts_.source.size() - 1;
  const PacerOptions pacing{
      .max_depth = parts_.tiers.max_depth(),
      .batch = options_.batch,
      .slots = parts_.ring.slots(),
      .objects = parts_.source.locate(0).store != nullptr || parts_.source.locate(last).store != nullptr};
  fetcher_ = std::make_unique<Fetcher>(FetcherParts{.stream = parts_.stream,
                                                    .source = parts_.source,
                                                    .tiers = parts_.tiers,
                                                    .ring = parts_.ring,
                                                    .works = works_,
                                                    .sample_limit = options_.limits.sample_bytes,
                                                    .longest_sample = options_.longest_sample,
                                                    .hold = options_.hold,
                                                    .record = parts_.record,
                                                    .chain = options_.partial_reads ? &parts_.chain : nullptr,
                                                    .seed = options_.seed,
                                                    .filling = filling_,
                                                    .only_fill = options_.only_fill},
                                       pacing);
  preparer_ = std::make_unique<Preparer>(PreparerParts{.source = parts_.source,
                                                       .chain = parts_.chain,
                                                       .ring = parts_.ring,
                                                       .works = works_,
                                                       .scratch = scratch_,
                                                       .quarantine = quarantine_,
                                                       .fetcher = *fetcher_,
                                                       .dimensions = parts_.dimensions,
                                                       .rewriter = rewriter_,
                                                       .rewrite = options_.rewrite,
                                                       .workers = options_.threads,
                                                       .epochs = parts_.stream.epochs(),
                                                       .positions = parts_.stream.schedule().size(),
                                                       .seed = options_.seed,
                                                       .on_error = options_.on_error,
                                                       .record = parts_.record});
  scratch_.restart();
  const Status started = start_threads(number);
  if (!started.ok()) stop();
  return started;
}

Status Pipeline::start_threads(std::uint64_t number) {
  threads_.reserve(options_.threads + 1);
  FORELOAD_ASSIGN(Thread fetch, Thread::start("fl-fetch", [this, number] { fetcher_->run(number); }));
  threads_.push_back(std::move(fetch));
  for (unsigned i = 0; i < options_.threads; ++i) {
    const auto body = [this, i] { preparer_->run(static_cast<std::uint16_t>(i + 1)); };
    FORELOAD_ASSIGN(Thread worker, Thread::start(fmt::format("fl-prep-{}", i), body));
    threads_.push_back(std::move(worker));
  }
  return {};
}

void Pipeline::stop() {
  if (threads_.empty()) return;
  parts_.ring.stop();
  scratch_.stop();
  fetcher_->stop();
  threads_.clear();
  works_.clear();
  parts_.ring.reset();
}

}  // namespace foreload
