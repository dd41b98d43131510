#include "pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace foreload {
namespace {

constexpr Duration kPatience = std::chrono::seconds(1);  // with workers of other processes

}  // namespace

Pipeline::Pipeline(const PipelineParts& parts, const PipelineOptions& options)
    : parts_(parts),
      options_(options),
      works_(parts.ring.slots(), options.batch),
      scratch_(options.scratch, std::max(options.threads, 1u)),
      quarantine_(options.limits.replacements),
      rewriter_({parts.source, parts.arena, scratch_, options.limits}, options.rewrite != Rewrite::kOff),
      idle_{.rewriter = rewriter_,
            .ring = parts.ring,
            .pace = [this] { return fetcher_->pace(); },
            .mode = options.rewrite,
            .workers = std::max(options.threads, 1u),
            .epochs = parts.stream.epochs()},
      board_(*this),
      preparer_(board_, scratch_, &idle_) {}

Pipeline::OwnBoard::OwnBoard(Pipeline& pipeline)
    : pipeline_(pipeline),
      stream_{.ring = pipeline.parts_.ring,
              .chain = pipeline.parts_.chain,
              .memory = {pipeline.parts_.arena.memory(), {}},
              .seed = pipeline.options_.seed,
              .positions = pipeline.parts_.stream.schedule().size(),
              .record = pipeline.parts_.record} {}

std::optional<PrepTask> Pipeline::OwnBoard::claim(unsigned /*worker*/) {
  const auto item = stream_.ring.claim();
  return item ? std::optional(PrepTask{&stream_, *item}) : std::nullopt;
}

void Pipeline::OwnBoard::settled(unsigned /*worker*/, const PrepTask& /*task*/, bool bad) {
  if (bad || stream_.ring.take_call()) pipeline_.parts_.tiers.wake();
}

bool Pipeline::OwnBoard::wait(unsigned /*worker*/, std::uint32_t seen, Time until) {
  return stream_.ring.wait_for_work(seen, until);
}

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
                                                    .only_fill = options_.only_fill,
                                                    .on_error = options_.on_error,
                                                    .quarantine = quarantine_,
                                                    .dimensions = parts_.dimensions,
                                                    .rewriter = rewriter_,
                                                    .shared = options_.threads == 0},
                                       pacing);
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
    const auto body = [this, i] { preparer_.run(static_cast<std::uint16_t>(i + 1)); };
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
  parts_.ring.reset();
  parts_.ring.wait_for_claims(now() + kPatience);
  works_.clear(parts_.ring);
}

}  // namespace foreload
