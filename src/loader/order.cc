#include "loader/order.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "plan/order.h"

namespace foreload {
namespace {

constexpr Epoch kMostEpochs = 1ull << 32;
constexpr std::uint64_t kMostEcho = 1000;
constexpr std::uint64_t kMostPositions = 1ull << 48;

Error invalid(std::string message) {
  return {Code::kInvalid, std::move(message)};
}

Status check_weights(const LoaderOptions& options) {
  if (options.weights.empty()) {
    if (options.epoch_samples == 0) return {};
    return invalid(
        fmt::format("epoch_samples {} (--epoch-samples, num_samples) without weights (--weights, weights): without "
                    "weights an epoch is every sample once; give weights, or a subset for a part of the dataset",
                    options.epoch_samples));
  }
  if (!options.shuffle) {
    return invalid(
        "weights (--weights, weights) and no shuffle (--in-order, shuffle) contradict each other: draws by weight are "
        "random; leave one of them out");
  }
  if (options.reshuffle < 1) {
    return invalid(
        fmt::format("weights (--weights, weights) and reshuffle {} (--reshuffle, reshuffle) contradict each other: a "
                    "draw with replacement has no home; leave one of them out",
                    options.reshuffle));
  }
  if (options.epoch_samples <= kMostPositions) return {};
  return invalid(fmt::format("epoch_samples {} is out of range: at most {}", options.epoch_samples, kMostPositions));
}

Status check_echo(const LoaderOptions& options) {
  if (options.echo == 0 || options.echo > kMostEcho) {
    return invalid(fmt::format("echo {} is out of range: 1 … {}", options.echo, kMostEcho));
  }
  if (options.echo == 1 && options.echo_window != 0) {
    return invalid(
        fmt::format("echo_window {} (--echo-window, echo_window) without echo (--echo, echo): nothing is repeated; "
                    "give an echo of at least 2",
                    options.echo_window));
  }
  if (options.echo > 1 && options.reshuffle < 1) {
    return invalid(
        fmt::format("echo {} (--echo, echo) and reshuffle {} (--reshuffle, reshuffle) contradict each other: repeats "
                    "would leave their home; leave one of them out",
                    options.echo, options.reshuffle));
  }
  return {};
}

Status check_reshuffle(const LoaderOptions& options) {
  if (!(options.reshuffle >= 0 && options.reshuffle <= 1)) {
    return invalid(fmt::format("reshuffle {} is out of range: a share of 0 … 1", options.reshuffle));
  }
  if (options.homes > kMostHomes) {
    return invalid(fmt::format("homes {} is out of range: at most {}", options.homes, kMostHomes));
  }
  if (options.reshuffle == 1 && options.homes != 0) {
    return invalid(
        fmt::format("homes {} (--homes, homes) without reshuffle (--reshuffle, reshuffle): a full shuffle knows no "
                    "homes; give a reshuffle below 1",
                    options.homes));
  }
  if (options.reshuffle < 1 && !options.shuffle) {
    return invalid(
        fmt::format("reshuffle {} (--reshuffle, reshuffle) and no shuffle (--in-order, shuffle) contradict each other: "
                    "it says how much is shuffled; leave one of them out",
                    options.reshuffle));
  }
  return {};
}

}  // namespace

Status check_order(const LoaderOptions& options) {
  FORELOAD_TRY(check_weights(options));
  FORELOAD_TRY(check_echo(options));
  return check_reshuffle(options);
}

std::uint64_t positions_per_epoch(const LoaderOptions& options, std::uint64_t samples) {
  return (options.epoch_samples != 0 ? options.epoch_samples : samples) * options.echo;
}

std::uint64_t global_batch_of(const LoaderOptions& options) {
  return options.global_batch != 0 ? options.global_batch : options.batch * options.world;
}

std::uint64_t echo_window_of(const LoaderOptions& options) {
  if (options.echo == 1) return 0;
  return options.echo_window != 0 ? options.echo_window : global_batch_of(options);
}

Result<Schedule> make_schedule(const LoaderOptions& options, std::uint64_t samples) {
  ScheduleOptions order{.samples = samples,
                        .seed = options.seed,
                        .shuffle = options.shuffle,
                        .epoch_samples = options.epoch_samples,
                        .echo = options.echo,
                        .echo_window = echo_window_of(options),
                        .reshuffle = options.reshuffle,
                        .homes = options.homes,
                        .global_batch = global_batch_of(options)};
  if (order.homes == 0) order.homes = options.world;
  if (options.weights.empty()) return Schedule(order);
  if (options.weights.size() != samples) {
    return invalid(
        fmt::format("weights: there are {}, and the dataset has {}; give one number per sample, in the "
                    "order of their ids",
                    options.weights.size(), counted(samples, "sample")));
  }
  FORELOAD_ASSIGN(WeightTable table, WeightTable::create(options.weights));
  order.weights = std::make_shared<const WeightTable>(std::move(table));
  return Schedule(order);
}

// Where a sample stands when nothing is dealt, it stands in its home.
std::vector<std::uint16_t> own_samples(const Schedule& schedule, const SliceAssignment& assignment,
                                       std::uint32_t rank) {
  ScheduleOptions undealt = schedule.options();
  if (undealt.reshuffle == 1 || undealt.homes == 1 || assignment.shape().world == 1) return {};
  undealt.reshuffle = 0;
  const Schedule still(undealt);
  std::vector<std::uint16_t> own(undealt.samples);
  for (std::uint64_t step = 0; step < assignment.batches_per_epoch(); ++step) {
    const Share share = assignment.share(step, rank);
    for (Position position = share.first; position < share.first + share.count; ++position) {
      own[still.sample_at(0, assignment.source_position(position))] = 1;
    }
  }
  return own;
}

namespace {

// What a plan's hash is made of.
struct PlanFacts {
  std::uint64_t global_batch = 0;
  LastBatch last_batch = LastBatch::kAuto;
  ScheduleOptions order{};
};

// `plain`, echoed in one of the usual ways.
std::optional<ScheduleOptions> echoed_with(std::uint64_t hash, const ScheduleOptions& plain,
                                           std::uint64_t global_batch) {
  constexpr std::uint64_t kMostEchoTried = 32;
  constexpr std::uint64_t kMostWindowTried = 4096;
  ScheduleOptions tried = plain;
  for (tried.echo = 2; tried.echo <= kMostEchoTried; ++tried.echo) {
    for (tried.echo_window = 1; tried.echo_window <= kMostWindowTried; ++tried.echo_window) {
      if (sampling_hash(tried) == hash) return tried;
    }
    tried.echo_window = global_batch;  // the usual one, however large
    if (sampling_hash(tried) == hash) return tried;
  }
  return std::nullopt;
}

std::optional<ScheduleOptions> reshuffled_with(std::uint64_t hash, const ScheduleOptions& plain) {
  constexpr std::uint64_t kMostHomesTried = 256;
  ScheduleOptions tried = plain;
  for (unsigned percent = 0; percent < 100; ++percent) {
    tried.reshuffle = percent / 100.0;
    for (tried.homes = 1; tried.homes <= kMostHomesTried; ++tried.homes) {
      if (sampling_hash(tried) == hash) return tried;
    }
  }
  return std::nullopt;
}

// Draws by our weights: of another number, or echoed in another way.
std::optional<ScheduleOptions> drawn_with(std::uint64_t hash, const ScheduleOptions& plain, const PlanFacts& ours) {
  constexpr std::uint64_t kMostDrawsTried = 1 << 20;
  if (!ours.order.weights) return std::nullopt;
  ScheduleOptions tried = plain;
  tried.weights = ours.order.weights;
  tried.epoch_samples = ours.order.epoch_samples;
  if (const auto found = echoed_with(hash, tried, ours.global_batch)) return found;
  for (tried.epoch_samples = 0; tried.epoch_samples <= kMostDrawsTried; ++tried.epoch_samples) {
    if (sampling_hash(tried) == hash) return tried;
  }
  return std::nullopt;
}

// The usual ways of sampling beside our own, of which a plan's hash has one part.
std::optional<ScheduleOptions> sampling_with(std::uint64_t hash, const PlanFacts& ours) {
  const ScheduleOptions plain{.shuffle = ours.order.shuffle};
  if (const auto found = echoed_with(hash, plain, ours.global_batch)) return found;
  if (const auto found = reshuffled_with(hash, plain)) return found;
  return drawn_with(hash, plain, ours);
}

// A hash can not be read back, but those of all usual plans can be tried.
std::optional<PlanFacts> plan_with(std::uint64_t hash, const PlanFacts& ours) {
  constexpr std::uint64_t kMostTried = 1 << 16;
  const std::uint64_t sampling = sampling_hash(ours.order);
  for (std::uint64_t batch = 1; batch <= kMostTried; ++batch) {
    for (const LastBatch rule : {LastBatch::kAuto, LastBatch::kRagged, LastBatch::kPad, LastBatch::kDrop}) {
      for (const bool shuffle : {true, false}) {
        const std::uint64_t rest = hash - shape_hash(shuffle, {.global_batch = batch, .last_batch = rule});
        PlanFacts facts{batch, rule, rest == sampling ? ours.order : ScheduleOptions{}};
        facts.order.shuffle = shuffle;
        if (rest == sampling || rest == 0) return facts;
      }
    }
  }
  const JobShape shape{.global_batch = ours.global_batch, .last_batch = ours.last_batch};
  const auto order = sampling_with(hash - shape_hash(ours.order.shuffle, shape), ours);
  if (!order) return std::nullopt;
  return PlanFacts{ours.global_batch, ours.last_batch, *order};
}

// "echo 4 in windows of 256"; the plain way has a name too, so that both sides of a difference have one.
std::string sampling_text(const ScheduleOptions& order) {
  std::vector<std::string> facts;
  if (order.weights) {
    facts.push_back(fmt::format("weights {}", hex16(order.weights->hash())));
    facts.push_back(order.epoch_samples != 0 ? fmt::format("{} draws", order.epoch_samples) : "a draw per sample");
  }
  if (order.echo > 1) facts.push_back(fmt::format("echo {} in windows of {}", order.echo, order.echo_window));
  if (order.reshuffle < 1) {
    facts.push_back(fmt::format("reshuffle {} with {}", order.reshuffle, counted(order.homes, "home")));
  }
  return facts.empty() ? "every sample once" : fmt::format("{}", fmt::join(facts, ", "));
}

// "global batch 64, in order": those facts in which it differs from `other`.
std::string differing(const PlanFacts& plan, const std::optional<PlanFacts>& other) {
  std::vector<std::string> facts;
  if (!other || plan.global_batch != other->global_batch) {
    facts.push_back(fmt::format("global batch {}", plan.global_batch));
  }
  if (!other || plan.order.shuffle != other->order.shuffle) {
    facts.push_back(plan.order.shuffle ? "shuffled" : "in order");
  }
  if (!other || plan.last_batch != other->last_batch) {
    facts.push_back(fmt::format("last batch {}", rule_name(plan.last_batch)));
  }
  if (!other || sampling_hash(plan.order) != sampling_hash(other->order)) {
    facts.push_back(sampling_text(plan.order));
  }
  return fmt::format("{}", fmt::join(facts, ", "));
}

// Every usual plan without weights was tried, and weights can not be guessed from their hash.
std::string not_found(const PlanFacts& ours) {
  return ours.order.weights ? "most likely one with other weights (none with these weights, or without, fits)"
                            : "most likely one with weights (none without weights fits)";
}

}  // namespace

Status check_state(const State& state, const State& here, const SliceAssignment& assignment,
                   const ScheduleOptions& schedule) {
  const auto differs = [](const char* what, const std::string& saved, const std::string& now, const char* advice) {
    return Error{Code::kMismatch,
                 fmt::format("the saved state does not belong to this loader: its {} is {}, here it is {}; {}", what,
                             saved, now, advice)};
  };
  if (state.version != here.version) {
    return differs("version", std::to_string(state.version), std::to_string(here.version),
                   "use the Foreload that wrote it");
  }
  if (state.fingerprint != here.fingerprint) {
    return differs("dataset fingerprint", hex16(state.fingerprint),
                   fmt::format("{} ({})", hex16(here.fingerprint), counted(schedule.samples, "sample")),
                   "open the dataset it was saved with: other files, lengths or labels make another one");
  }
  if (state.seed != here.seed) {
    return differs("seed", std::to_string(state.seed), std::to_string(here.seed),
                   "open the loader with the saved seed");
  }
  if (state.plan != here.plan) {
    const PlanFacts ours{assignment.shape().global_batch, assignment.shape().last_batch, schedule};
    const std::optional<PlanFacts> saved = plan_with(state.plan, ours);
    return differs(
        "plan", saved ? differing(*saved, ours) : not_found(ours), differing(ours, saved),
        "shuffle, last batch, global batch (batch × world) and the way of sampling (--weights, --echo, --reshuffle) "
        "must be as they were; when the world changes, give the global batch itself (--global-batch, global_batch), "
        "and "
        "with reshuffle the homes (--homes, homes)");
  }
  if (state.epoch >= kMostEpochs) {
    return differs("epoch", std::to_string(state.epoch), fmt::format("below {}", kMostEpochs), "the state is damaged");
  }
  // At an epoch's end a world pads by less than one global batch.
  const std::uint64_t batch = assignment.shape().global_batch;
  const std::uint64_t samples = assignment.shape().samples;
  if (state.position >= samples + batch || (state.position % batch != 0 && state.position < samples)) {
    return differs("position", std::to_string(state.position), fmt::format("a multiple of {} up to {}", batch, samples),
                   "the state is damaged");
  }
  return {};
}

}  // namespace foreload
