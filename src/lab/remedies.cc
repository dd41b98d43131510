// A remedy is a change of the setup and words for it. Its gain is the prediction with the change against the one
// without.
#include "lab/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/text.h"
#include "lab/what_if.h"

namespace foreload {
namespace {

constexpr double kWorthwhile = 0.02;  // less than that is noise
constexpr double kTogether = 0.05;    // a pair must bring so much more than its better half
constexpr double kNoStall = 0.995;    // busy so much
constexpr std::size_t kMostRemedies = 6;
constexpr double kBudgetOfMachine = 0.8;  // that a job may ask for

struct Change {
  std::string title;
  std::string says;
  std::string command;
  std::string python;
  bool prep = false;  // what it is for; otherwise fetching
  std::function<void(JobSetup&)> apply;
};

struct Context {
  const Model& model;
  const JobText& job;
  Prediction now;
  double goal;  // what the job could do at best: its accelerators, or without any its fetching and prep
};

// "48GiB", "300MiB": rounded up, as the flags take it.
std::string size_word(Bytes bytes) {
  const Bytes unit = bytes >= 16_GiB ? 1_GiB : 1_MiB;
  return fmt::format("{}{}", (bytes + unit - 1) / unit, unit == 1_GiB ? "GiB" : "MiB");
}

std::string run_line(const Context& in, const std::string& flag) {
  return fmt::format("foreload run {}{}{}", in.job.uri, in.job.flags, flag);
}

std::string python_line(const Context& in, const std::string& argument) {
  return fmt::format("foreload.DataLoader({}{}{})", in.job.python_uri, in.job.python_arguments, argument);
}

std::optional<Change> convert(const Context& in) {
  const Form form = in.model.here().form;
  if (form != Form::kRaw && form != Form::kRecord) return std::nullopt;
  const bool crops = in.model.knows(Form::kCropAddressable);
  const Form to = crops ? Form::kCropAddressable : Form::kRecord;
  if (form == to || !in.model.knows(to)) return std::nullopt;
  return Change{"convert",
                crops ? "JPEGs rewritten without loss, so that only the crop is read and decoded; once, about the "
                        "dataset's size on disk"
                      : "one file for many samples; once, the dataset's size on disk",
                fmt::format("foreload convert {} {}", in.job.uri, in.job.converted),
                fmt::format("foreload.DataLoader(\"{}\"{})", in.job.converted, in.job.python_arguments),
                true,
                [to](JobSetup& setup) { setup.form = to; }};
}

// The smallest number of cores that does not limit; if none does, twice as many.
std::optional<Change> more_cores(const Context& in) {
  const JobSetup& here = in.model.here();
  const unsigned now = std::min(here.threads, here.cores);
  if (now < here.cores) {
    return Change{fmt::format("use all {}", counted(here.cores, "core")),
                  fmt::format("{} are idle", counted(here.cores - now, "core")),
                  run_line(in, fmt::format(" --workers {}", here.cores / here.accelerators)),
                  python_line(in, fmt::format(", workers={}", here.cores / here.accelerators)),
                  true,
                  [](JobSetup& setup) { setup.threads = setup.cores; }};
  }
  const auto enough = smallest_cores(in.model, here, in.goal);
  const unsigned wanted = enough ? *enough : 2 * here.cores;
  if (wanted <= here.cores) return std::nullopt;
  const unsigned each = (wanted - here.cores + here.accelerators - 1) / here.accelerators;
  return Change{fmt::format("{} per accelerator", counted(each, "more core")),
                fmt::format("prep goes on {} then; {}", counted(here.cores + each * here.accelerators, "core"),
                            wanted > in.model.prep().most_measured()
                                ? fmt::format("measured up to {}, so this is extrapolated",
                                              counted(in.model.prep().most_measured(), "thread"))
                                : "as measured"),
                "",
                "",
                true,
                [each, &here](JobSetup& setup) { setup = with_cores(setup, here.cores + each * here.accelerators); }};
}

Bytes budget_for(const Context& in, Bytes cache) {
  return cache + in.job.overhead;
}

// As much memory as ends the fetch stall, or all of the machine's that a job may have.
std::optional<Change> more_memory(const Context& in) {
  const JobSetup& here = in.model.here();
  const unsigned owners = in.job.has_host ? 1 : here.accelerators;
  const auto most_budget =
      static_cast<Bytes>(kBudgetOfMachine * static_cast<double>(in.job.machine_memory) / std::max(owners, 1u));
  const Bytes most = std::min(in.model.measured().bytes, most_budget - std::min(most_budget, in.job.overhead));
  const auto enough = smallest_cache(in.model, here, without_fetch(in.now));
  const Bytes cache = enough ? std::min(*enough, most) : most;
  if (cache <= here.cache && here.policy == CachePolicy::kNeverEvict) return std::nullopt;
  const bool ends = enough && *enough <= most;
  const std::string budget = size_word(budget_for(in, cache));
  return Change{fmt::format("cache {}", format_bytes(cache)),
                fmt::format("a budget of {}: {}", budget,
                            ends ? "no fetch stall from epoch 2 on"
                                 : fmt::format("what this machine can give; {} would end the fetch stall",
                                               enough ? format_bytes(*enough) : "no amount")),
                run_line(in, " --memory " + budget),
                python_line(in, fmt::format(", memory=\"{}\"", budget)),
                false,
                [cache](JobSetup& setup) {
                  setup.policy = CachePolicy::kNeverEvict;
                  setup.cache = std::max(setup.cache, cache);
                }};
}

std::optional<Change> never_evict(const Context& in) {
  const JobSetup& here = in.model.here();
  if (here.policy != CachePolicy::kLru) return std::nullopt;
  return Change{"evict nothing",
                "every sample is used once an epoch, so whatever stays is as good as what goes; costs nothing",
                run_line(in, " --eviction static"),
                python_line(in, ", eviction=\"static\""),
                false,
                [](JobSetup& setup) { setup.policy = CachePolicy::kNeverEvict; }};
}

std::optional<Change> one_cache(const Context& in) {
  const JobSetup& here = in.model.here();
  if (in.job.has_host || here.accelerators < 2 || here.cache == 0) return std::nullopt;
  return Change{"one cache for all learners of this machine",
                fmt::format("{} put their memory together instead of keeping the same samples; costs nothing",
                            counted(here.accelerators, "learner")),
                run_line(in, " --host job"),
                python_line(in, ", host=\"job\""),
                false,
                [](JobSetup& setup) { setup.cache *= setup.accelerators; }};
}

std::optional<Change> shared_by_hosts(const Context& in) {
  const JobSetup& here = in.model.here();
  if (here.hosts < 2 || here.partitioned) return std::nullopt;
  return Change{fmt::format("{} share their caches", counted(here.hosts, "host")),
                in.model.measured().network.known()
                    ? "each keeps other samples and gives them to the others"
                    : "each keeps other samples and gives them to the others; the network was not measured, and is "
                      "taken to be fast enough",
                run_line(in, " --peers auto"),
                python_line(in, ", peers=\"auto\""),
                false,
                [](JobSetup& setup) { setup.partitioned = true; }};
}

std::optional<Change> local_disk(const Context& in) {
  const JobSetup& here = in.model.here();
  const Figure disk = in.model.measured().disk;
  if (here.disk > 0 || !disk.known() || disk.value <= in.model.storage().value) return std::nullopt;
  return Change{"keep samples on a local disk",
                fmt::format("read at {:.0f} MB/s from epoch 2 on, and by later runs; takes up to {} there",
                            disk.value / 1e6, format_bytes(in.model.measured().bytes)),
                run_line(in, " --disk FOLDER"),
                python_line(in, ", disk=\"FOLDER\""),
                false,
                [all = in.model.measured().bytes](JobSetup& setup) { setup.disk = all; }};
}

std::optional<Change> faster_storage(const Context& in) {
  const auto enough = smallest_storage(in.model, in.model.here(), without_fetch(in.now));
  const double now = in.model.here().storage.value_or(in.model.storage().value);
  if (!enough || *enough <= now) return std::nullopt;
  return Change{fmt::format("storage of {:.0f} MB/s", *enough / 1e6),
                fmt::format("it gives {:.0f} MB/s now; with the rest no fetch stall in later epochs", now / 1e6),
                "",
                "",
                false,
                [rate = *enough](JobSetup& setup) { setup.storage = rate; }};
}

std::optional<Change> bytes_out(const Context& in) {
  if (in.job.bytes_flags.empty() || in.model.here().dtype != DType::kF32 || !in.model.knows(DType::kU8))
    return std::nullopt;
  return Change{"batches of u8",
                "a quarter of the bytes, and the accelerator normalises; a line in the training script",
                run_line(in, in.job.bytes_flags),
                python_line(in, ", dtype=\"u8\""),
                true,
                [](JobSetup& setup) { setup.dtype = DType::kU8; }};
}

std::vector<Change> changes(const Context& in) {
  std::vector<Change> all;
  for (const auto& make : {convert, more_cores, more_memory, never_evict, one_cache, shared_by_hosts, local_disk,
                           faster_storage, bytes_out}) {
    if (auto change = make(in)) all.push_back(std::move(*change));
  }
  return all;
}

std::optional<Remedy> judge(const Context& in, const std::vector<const Change*>& parts) {
  JobSetup setup = in.model.here();
  Remedy remedy;
  for (const Change* part : parts) {
    part->apply(setup);
    remedy.title += (remedy.title.empty() ? "" : ", and ") + part->title;
    remedy.says += (remedy.says.empty() ? "" : "; ") + part->says;
    remedy.command += remedy.command.empty() || part->command.empty() ? part->command : "; " + part->command;
    remedy.python += remedy.python.empty() || part->python.empty() ? part->python : "; " + part->python;
  }
  const auto made = in.model.predict(setup);
  if (!made) return std::nullopt;
  remedy.rate = made->stalls.rate;
  remedy.gain = remedy.rate / in.now.stalls.rate - 1;
  const bool ends = made->stalls.busy >= kNoStall;
  remedy.title += fmt::format(": +{:.0f} %{}", 100 * remedy.gain, ends ? ", no stall" : "");
  return remedy.gain >= kWorthwhile ? std::optional(remedy) : std::nullopt;
}

double gain_of(const Context& in, const Change& change) {
  const auto remedy = judge(in, {&change});
  return remedy ? remedy->gain : 0;
}

// One for fetching with one for prep: where both limit about equally, neither alone brings much.
void add_pairs(const Context& in, const std::vector<Change>& all, std::vector<Remedy>& found) {
  for (const Change& fetch : all) {
    for (const Change& prep : all) {
      if (fetch.prep || !prep.prep) continue;
      const auto both = judge(in, {&prep, &fetch});
      const double better = std::max(gain_of(in, fetch), gain_of(in, prep));
      if (both && both->gain > better + kTogether) found.push_back(*both);
    }
  }
}

}  // namespace

std::vector<Remedy> remedies(const Model& model, const JobText& job) {
  const auto now = model.predict(model.here());
  if (!now || now->stalls.bound == Bound::kAccelerator) return {};
  const double goal = std::isfinite(now->accelerator) ? now->accelerator : std::max(now->fetch, now->prep);
  const Context in{model, job, *now, goal};
  const std::vector<Change> all = changes(in);
  std::vector<Remedy> found;
  for (const Change& change : all) {
    if (auto remedy = judge(in, {&change})) found.push_back(std::move(*remedy));
  }
  add_pairs(in, all, found);
  std::ranges::stable_sort(found, std::greater<>(), &Remedy::gain);
  if (found.size() > kMostRemedies) found.resize(kMostRemedies);
  return found;
}

}  // namespace foreload
