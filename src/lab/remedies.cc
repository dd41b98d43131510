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
constexpr double kTogether = 1.05;    // a pair must be so many times as fast as the best single one
constexpr double kBetter = 1.005;     // than another: below, they are equals
constexpr double kNoStall = 0.995;    // busy so much
constexpr std::size_t kMostPairs = 2;
constexpr std::size_t kMostRemedies = 6;
constexpr double kBudgetOfMachine = 0.8;  // that a job may ask for

struct Change {
  std::string title;
  std::string says;
  std::vector<Setting> flags;
  std::vector<Setting> arguments;
  bool converts = false;
  bool prep = false;  // what it is for; otherwise fetching
  std::function<void(JobSetup&)> apply;
};

struct Context {
  const Model& model;
  const JobText& job;
  JobSetup here;  // what is to be changed
  Prediction now;
  double prep_goal;  // samples per second that prep should reach
};

// "48GiB", "300MiB": rounded up, as the flags take it.
std::string size_word(Bytes bytes) {
  const Bytes unit = bytes >= 16_GiB ? 1_GiB : 1_MiB;
  return fmt::format("{}{}", (bytes + unit - 1) / unit, unit == 1_GiB ? "GiB" : "MiB");
}

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";
}

// New ones in the place of old ones.
std::vector<Setting> merged(std::vector<Setting> all, const std::vector<Setting>& more) {
  for (const Setting& setting : more) {
    std::erase_if(all, [&](const Setting& old) { return old.name == setting.name; });
    all.push_back(setting);
  }
  return all;
}

std::string command_line(const JobText& job, const Change& change) {
  const std::string convert = fmt::format("foreload convert {} {}", job.uri, job.converted);
  if (change.flags.empty()) return change.converts ? convert : "";
  std::string run = "foreload run " + (change.converts ? job.converted : job.uri);
  const bool caches = std::ranges::any_of(change.flags, [](const Setting& flag) { return flag.name == "--memory"; });
  for (const Setting& flag : merged(job.flags, change.flags)) {
    if (caches && flag.name == "--no-cache") continue;
    run += " " + flag.name + (flag.value.empty() ? "" : " " + flag.value);
  }
  return change.converts ? convert + " && " + run : run;
}

std::string python_line(const JobText& job, const Change& change) {
  if (change.arguments.empty() && !change.converts) return "";
  std::string line = "foreload.DataLoader(" + (change.converts ? quoted(job.converted) : job.python_uri);
  for (const Setting& argument : merged(job.arguments, change.arguments)) {
    line += ", " + argument.name + "=" + argument.value;
  }
  return line + ")";
}

std::optional<Change> convert(const Context& in) {
  const Form form = in.here.form;
  if (form != Form::kRaw && form != Form::kRecord) return std::nullopt;
  const bool crops = in.model.knows(Form::kCropAddressable);
  const Form to = crops ? Form::kCropAddressable : Form::kRecord;
  if (form == to || !in.model.knows(to)) return std::nullopt;
  return Change{.title = "convert",
                .says = crops ? "JPEGs are rewritten once, without loss, so that only the crop is decoded; takes about "
                                "the dataset's size on disk"
                              : "many samples in one file; takes the dataset's size on disk",
                .converts = true,
                .prep = true,
                .apply = [to](JobSetup& setup) { setup.form = to; }};
}

std::optional<Change> all_cores(const Context& in) {
  const JobSetup& here = in.here;
  if (here.threads >= here.cores) return std::nullopt;
  const unsigned workers = std::max(1u, here.cores / here.accelerators);
  const std::string each = std::to_string(workers);
  return Change{.title = fmt::format("use all {}", counted(here.cores, "core")),
                .says = fmt::format("prep leaves {} idle", counted(here.cores - here.threads, "core")),
                .flags = {{"--workers", each}},
                .arguments = {{"workers", each}},
                .prep = true,
                .apply = [workers](JobSetup& setup) { setup.threads = workers * setup.accelerators; }};
}

// "measured was up to 4 threads, …": how far it can be believed.
std::string basis_of(const PrepCurve& prep, unsigned cores) {
  const unsigned measured = prep.most_measured();
  if (cores <= measured) return "as measured";
  const std::string known = fmt::format("measured was up to {}", counted(measured, "thread"));
  return cores < prep.reach() ? known + ", the rest is extrapolated"
                              : fmt::format("{}, the rest is extrapolated, and not beyond {}", known, prep.reach());
}

// The smallest number of cores that does not limit; if none does, twice as many, as far as anything is known of them.
std::optional<Change> more_cores(const Context& in) {
  const JobSetup& here = in.here;
  JobSetup cached = here;  // fetching is no concern of cores
  cached.policy = CachePolicy::kNeverEvict;
  cached.cache = in.model.measured().bytes;
  const auto enough = smallest_cores(in.model, cached, in.prep_goal);
  const unsigned wanted = enough ? *enough : std::min(2 * here.cores, in.model.prep().reach());
  if (here.threads < here.cores || wanted <= here.cores) return std::nullopt;
  const unsigned each = (wanted - here.cores + here.accelerators - 1) / here.accelerators;
  const unsigned all = here.cores + each * here.accelerators;
  return Change{
      .title = fmt::format("{} per accelerator", counted(each, "more core")),
      .says = fmt::format("{} of a host prepare then; {}", counted(all, "core"), basis_of(in.model.prep(), all)),
      .prep = true,
      .apply = [all](JobSetup& setup) { setup = with_cores(setup, all); }};
}

// The largest cache that a learner can have on this machine.
Bytes most_cache(const Context& in) {
  const unsigned owners = in.job.has_host ? 1 : std::max(in.here.accelerators, 1u);
  const auto most = static_cast<Bytes>(kBudgetOfMachine * static_cast<double>(in.job.machine_memory) / owners);
  const Bytes all = in.model.measured().bytes;
  const Bytes beside = in.job.budget(all) - std::min(all, in.job.budget(all));
  return std::min(all, most - std::min(most, beside));
}

// As much memory as ends the fetch stall, or all of the machine's that a job may have.
std::optional<Change> more_memory(const Context& in) {
  const JobSetup& here = in.here;
  const Bytes most = most_cache(in);
  const auto enough = smallest_cache(in.model, here, without_fetch(in.now));
  const Bytes cache = enough ? std::min(*enough, most) : most;
  if (cache <= here.cache || here.policy == CachePolicy::kLru) return std::nullopt;
  const std::string budget = size_word(in.job.budget(cache));
  return Change{.title = fmt::format("cache {}", format_bytes(cache)),
                .says = enough && *enough <= most
                            ? fmt::format("a budget of {}; no fetch stall from epoch 2 on", budget)
                            : fmt::format("a budget of {} is what this machine can give; {}", budget,
                                          enough ? format_bytes(*enough) + " would end the fetch stall"
                                                 : "no amount would end the fetch stall"),
                .flags = {{"--memory", budget}},
                .arguments = {{"memory", quoted(budget)}},
                .apply = [cache](JobSetup& setup) { setup = with_cache(setup, cache); }};
}

std::optional<Change> never_evict(const Context& in) {
  if (in.here.policy != CachePolicy::kLru) return std::nullopt;
  return Change{
      .title = "evict nothing",
      .says = "every sample is used once an epoch: what stays is as good as what would come, and saves a read",
      .flags = {{"--eviction", "static"}},
      .arguments = {{"eviction", quoted("static")}},
      .apply = [](JobSetup& setup) { setup.policy = CachePolicy::kNeverEvict; }};
}

std::optional<Change> one_cache(const Context& in) {
  const JobSetup& here = in.here;
  if (in.job.has_host || here.accelerators < 2 || here.cache == 0) return std::nullopt;
  const std::string memory = size_word(in.job.memory * here.accelerators);
  return Change{.title = "one cache for all learners of a machine",
                .says = fmt::format("{} put their memory together instead of keeping the same samples: {} are the "
                                    "budget of all of them, as it is now; costs nothing",
                                    counted(here.accelerators, "learner"), memory),
                .flags = {{"--host", "job"}, {"--memory", memory}},
                .arguments = {{"host", quoted("job")}, {"memory", quoted(memory)}},
                .apply = [](JobSetup& setup) {
                  setup.cache *= setup.accelerators;
                  setup.caches = 1;
                }};
}

std::optional<Change> shared_by_hosts(const Context& in) {
  const JobSetup& here = in.here;
  if (here.hosts < 2 || here.partitioned) return std::nullopt;
  return Change{.title = fmt::format("{} share their caches", counted(here.hosts, "host")),
                .says = "each keeps other samples and gives them to the others",
                .flags = {{"--peers", "auto"}},
                .arguments = {{"peers", quoted("auto")}},
                .apply = [](JobSetup& setup) { setup.partitioned = true; }};
}

std::optional<Change> local_disk(const Context& in) {
  const JobSetup& here = in.here;
  const Figure disk = in.model.measured().disk;
  const Bytes all = in.model.measured().bytes;
  if (here.disk > 0 || !disk.known() || disk.value <= in.model.storage().value) return std::nullopt;
  return Change{.title = "keep samples on a local disk",
                .says = fmt::format("read at {:.0f} MB/s from epoch 2 on and in later runs; takes up to {} there",
                                    disk.value / 1e6, format_bytes(all)),
                .flags = {{"--disk", "FOLDER"}},
                .arguments = {{"disk", quoted("FOLDER")}},
                .apply = [all](JobSetup& setup) { setup.disk = all; }};
}

std::optional<Change> faster_storage(const Context& in) {
  const auto enough = smallest_storage(in.model, in.here, without_fetch(in.now));
  const double now = in.here.storage.value_or(in.model.storage().value);
  if (!enough || *enough <= now) return std::nullopt;
  return Change{
      .title = fmt::format("storage of {:.0f} MB/s", std::ceil(*enough / 1e6)),
      .says = fmt::format("it must reach that, and gives {:.0f} MB/s; no fetch stall in later epochs then", now / 1e6),
      .apply = [rate = *enough](JobSetup& setup) { setup.storage = rate; }};
}

std::optional<Change> bytes_out(const Context& in) {
  if (in.job.bytes_flags.empty() || in.here.dtype != DType::kF32 || !in.model.knows(DType::kU8)) return std::nullopt;
  return Change{.title = "batches of u8",
                .says = "the accelerator normalises, in a line of the training script; a quarter of the bytes",
                .flags = in.job.bytes_flags,
                .arguments = in.job.bytes_arguments,
                .prep = true,
                .apply = [](JobSetup& setup) { setup.dtype = DType::kU8; }};
}

std::vector<Change> changes(const Context& in) {
  std::vector<Change> all;
  for (const auto& make : {convert, all_cores, more_cores, more_memory, never_evict, one_cache, shared_by_hosts,
                           local_disk, faster_storage, bytes_out}) {
    if (auto change = make(in)) all.push_back(std::move(*change));
  }
  return all;
}

Change both(const Change& first, const Change& second) {
  return {.title = first.title + ", and " + second.title,
          .says = first.says + "; " + second.says,
          .flags = merged(first.flags, second.flags),
          .arguments = merged(first.arguments, second.arguments),
          .converts = first.converts || second.converts,
          .prep = false,
          .apply = [first = first.apply, second = second.apply](JobSetup& setup) {
            first(setup);
            second(setup);
          }};
}

std::optional<Remedy> judge(const Context& in, const Change& change) {
  JobSetup setup = in.here;
  change.apply(setup);
  const auto made = in.model.predict(setup);
  if (!made) return std::nullopt;
  const double gain = made->stalls.rate / in.now.stalls.rate - 1;
  if (gain < kWorthwhile) return std::nullopt;
  return Remedy{.title = change.title,
                .gain = gain,
                .rate = made->stalls.rate,
                .no_stall = made->stalls.busy >= kNoStall,
                .says = made->assumes.empty() ? change.says : change.says + "; " + made->assumes,
                .command = command_line(in.job, change),
                .python = python_line(in.job, change)};
}

// One for prep, and the best one for fetching as it is needed then, the first of equals: where both limit about
// equally, neither alone brings much.
std::vector<Remedy> pairs(const Context& in) {
  std::vector<Remedy> found;
  Context wide = in;
  wide.prep_goal = in.now.accelerator;
  for (const Change& prep : changes(wide)) {
    Context after = wide;
    prep.apply(after.here);
    const auto then = in.model.predict(after.here);
    if (!prep.prep || !then) continue;
    after.now = *then;
    std::optional<Remedy> best;
    for (const Change& fetch : changes(after)) {
      if (fetch.prep) continue;
      auto remedy = judge(in, both(prep, fetch));
      if (remedy && (!best || remedy->rate > kBetter * best->rate)) best = std::move(remedy);
    }
    if (best) found.push_back(std::move(*best));
  }
  return found;
}

}  // namespace

std::vector<Remedy> remedies(const Model& model, const JobText& job) {
  const auto now = model.predict(model.here());
  if (!now || now->stalls.bound == Bound::kAccelerator) return {};
  const Context in{model, job, model.here(), *now, without_prep(*now)};
  std::vector<Remedy> found;
  double best = now->stalls.rate;
  for (const Change& change : changes(in)) {
    auto remedy = judge(in, change);
    if (!remedy) continue;
    best = std::max(best, remedy->rate);
    found.push_back(std::move(*remedy));
  }
  std::ranges::stable_sort(found, std::greater<>(), &Remedy::gain);
  if (found.size() > kMostRemedies - kMostPairs) found.resize(kMostRemedies - kMostPairs);
  if (!std::isfinite(now->accelerator)) return found;
  std::vector<Remedy> together = pairs(in);
  std::erase_if(together, [&](const Remedy& pair) { return pair.rate < kTogether * best; });
  std::ranges::stable_sort(together, std::greater<>(), &Remedy::gain);
  if (together.size() > kMostPairs) together.resize(kMostPairs);
  found.insert(found.begin(), together.begin(), together.end());
  return found;
}

}  // namespace foreload
