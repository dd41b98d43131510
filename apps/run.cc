// The main job: loads epochs into an emulated accelerator and says what it waited for.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <deque>
#include <memory>

#include "accelerator.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/write_file.h"
#include "commands.h"
#include "help_layout.h"
#include "loader_flags.h"
#include "number_flag.h"
#include "progress.h"
#include "signal_watch.h"
#include "signals.h"
#include "stream_hash.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr const char* kExamples =
    "  foreload run data/train --epochs 3                     as fast as possible\n"
    "  foreload run data/train --accelerator resnet50-a100    would an A100 wait?\n"
    "  foreload run 'train-{000..099}.tar' --memory 8GiB --storage 200MB/s,5ms\n"
    "  foreload run data/train --host job7 --memory 64GiB     shares cache and prep\n"
    "                          with others of this machine that name the same host\n"
    "  foreload run data/train --state job.json --resume job.json\n"
    "The last one starts a job, and continues it where it was stopped.";

constexpr Bytes kLongestState = 64_KiB;
constexpr std::size_t kMostReported = 10'000;  // epochs: a run may have any number

struct RunOptions {
  Epoch epochs = 1;
  std::string accelerator = "none";
  std::string resume;
  std::string state;
  std::string log;
  bool hash = false;
};

struct EpochReport {
  EpochStats stats;
  StreamHash hash;
  Duration busy{};  // of the accelerator
};

class Run {
 public:
  Run(const RunOptions& options, Accelerator accelerator, Loader& loader, const Output& output)
      : options_(options),
        accelerator_(accelerator),
        loader_(loader),
        output_(output),
        keeps_one_state_(options.resume == options.state) {}

  Status open_files();
  Status resume();
  // Loads until all epochs are read or a signal comes.
  Status load();
  Json report(const LoaderOptions& options) const;

 private:
  Status load_epoch();
  std::uint64_t samples_per_epoch() const;
  Status consume(const Batch& batch, EpochReport& epoch);
  Status save_state();
  std::string progress_note() const;
  void print_header() const;
  void print_epoch(const EpochReport& report) const;
  void print_end() const;
  Json epoch_json(const EpochReport& epoch) const;

  RunOptions options_;
  Accelerator accelerator_;
  Loader& loader_;
  const Output& output_;
  bool keeps_one_state_;            // --state and --resume name the same file
  std::deque<EpochReport> epochs_;  // the last ones
  std::uint64_t left_out_ = 0;      // before them
  std::uint64_t batches_ = 0;
  std::uint64_t shared_batches_ = 0;
  Descriptor log_;
  Time saved_{};
  Time shown_{};
};

Status Run::open_files() {
  if (!options_.state.empty()) {
    FORELOAD_ASSIGN(options_.state, follow_links(options_.state));
    remove_leftovers(options_.state);
  }
  if (options_.log.empty()) return {};
  FORELOAD_ASSIGN(log_, create_output(options_.log));
  return {};
}

Status Run::resume() {
  if (options_.resume.empty()) return {};
  // The same line starts a job and continues it.
  struct stat status {};
  if (keeps_one_state_ && ::stat(options_.resume.c_str(), &status) != 0 && errno == ENOENT) return {};
  FORELOAD_ASSIGN(const std::string text, read_whole_file(options_.resume, kLongestState));
  auto state = state_from_json(text);
  if (!state) return Error{state.error().code, fmt::format("{}: {}", options_.resume, state.error().message)};
  return loader_.seek(*state);
}

Status Run::load() {
  FORELOAD_TRY(save_state());  // so that there is one to resume from, whenever this ends
  print_header();
  while (loader_.position().epoch < options_.epochs) {
    FORELOAD_TRY(load_epoch());
    FORELOAD_TRY(save_state());
    print_epoch(epochs_.back());
  }
  print_end();
  return {};
}

// All batches have as many samples as the first, except the last.
std::uint64_t Run::samples_per_epoch() const {
  const std::uint64_t batches = loader_.batches_per_epoch();
  return batches == 0 ? 0 : (batches - 1) * loader_.positions(0, 0).size() + loader_.positions(0, batches - 1).size();
}

Status Run::load_epoch() {
  if (epochs_.size() == kMostReported) {
    epochs_.pop_front();
    ++left_out_;
  }
  epochs_.emplace_back();
  Progress progress(fmt::format("epoch {}", loader_.position().epoch), "samples", samples_per_epoch());
  std::uint64_t samples = 0;
  for (;;) {
    if (caught_signal() != 0) {
      FORELOAD_TRY(save_state());
      return Error{Code::kCancelled, options_.state.empty()
                                         ? "stopped by a signal"
                                         : fmt::format("stopped by a signal; --resume {} continues", options_.state)};
    }
    auto batch = loader_.next();
    if (!batch && batch.error().code == Code::kCancelled && caught_signal() != 0) continue;
    if (!batch) return std::move(batch).error();
    if (!*batch) {
      epochs_.back().stats = loader_.stats().epochs.back();
      batches_ += epochs_.back().stats.batches;
      shared_batches_ += epochs_.back().stats.shared_batches;
      return {};
    }
    FORELOAD_TRY(consume(**batch, epochs_.back()));
    samples += (*batch)->size();
    if (now() - shown_ < 100ms) continue;
    shown_ = now();
    progress.set(samples, progress_note());
  }
}

Status Run::consume(const Batch& batch, EpochReport& epoch) {
  StreamHash hash;
  const std::vector<Position> positions = loader_.positions(batch.epoch(), batch.step());
  if (options_.hash) hash = hash_batch(batch, positions);
  epoch.hash += hash;
  epoch.busy += accelerator_.step(batch.size(), [] { return caught_signal() != 0; });
  if (log_.valid()) {
    Json line{{"epoch", batch.epoch()}, {"step", batch.step()}, {"positions", positions}, {"ids", batch.ids()}};
    if (options_.hash) line.update({{"order", hex16(hash.order)}, {"content", hex16(hash.content)}});
    const std::string text = line.dump() + "\n";
    FORELOAD_TRY(write_all(log_.get(), std::as_bytes(std::span(text)), options_.log));
  }
  if (now() - saved_ > 200ms) return save_state();
  return {};
}

Status Run::save_state() {
  if (options_.state.empty()) return {};
  saved_ = now();
  const std::string text = state_to_json(loader_.position()) + "\n";
  return replace_file(options_.state, std::as_bytes(std::span(text)));
}

double share_of(Duration part, Duration whole) {
  return whole.count() > 0 ? seconds(part) / seconds(whole) : 0;
}

std::string Run::progress_note() const {
  const LoaderStats stats = loader_.stats();
  const EpochStats& epoch = stats.epochs.back();
  return fmt::format("stall: fetch {:.0f} %, prep {:.0f} %", 100 * share_of(epoch.fetch_stall, epoch.wall),
                     100 * share_of(epoch.prep_stall, epoch.wall));
}

Json Run::epoch_json(const EpochReport& epoch) const {
  const EpochStats& stats = epoch.stats;
  Json json{{"epoch", stats.epoch},
            {"samples", stats.samples},
            {"batches", stats.batches},
            {"seconds", seconds(stats.wall)},
            {"samples_per_s", stats.wall.count() > 0 ? static_cast<double>(stats.samples) / seconds(stats.wall) : 0.0}};
  json["order_hash"] = options_.hash ? Json(hex16(epoch.hash.order)) : Json();
  json["content_hash"] = options_.hash ? Json(hex16(epoch.hash.content)) : Json();
  json["bytes"] = {{"memory", stats.memory_bytes},
                   {"disk", stats.disk_bytes},
                   {"peer", stats.peer_bytes},
                   {"source", stats.source_bytes}};
  json["filled_bytes"] = stats.filled_bytes;
  json["shared_batches"] = stats.shared_batches;
  const double fetch = share_of(stats.fetch_stall, stats.wall);
  const double prep = share_of(stats.prep_stall, stats.wall);
  json["stall"] = {{"total", fetch + prep}, {"fetch", fetch}, {"prep", prep}};
  const auto per_second = [](std::uint64_t amount, Duration time) {
    return time.count() > 0 ? static_cast<double>(amount) / seconds(time) : 0.0;
  };
  // What the stages did: source bytes per second of the epoch, samples per second of worker time.
  json["rates"] = {{"source_bytes_per_s", per_second(stats.source_bytes, stats.wall)},
                   {"prep_samples_per_thread_s", per_second(stats.samples, stats.prep_busy)}};
  json["utilisation"] = accelerator_.exists() ? Json(share_of(epoch.busy, stats.wall)) : Json();
  json["replaced"] = stats.replaced;
  json["damaged"] = stats.damaged;
  json["padded"] = stats.padded;
  return json;
}

Json Run::report(const LoaderOptions& options) const {
  const LoaderStats stats = loader_.stats();
  const Source& source = loader_.source();
  Json json{{"dataset",
             {{"uri", source.uri()},
              {"fingerprint", hex16(source.fingerprint())},
              {"samples", source.size()},
              {"bytes", source.total_bytes()}}},
            {"world", {{"rank", options.rank}, {"world_size", options.world}, {"hosts", stats.hosts}}},
            {"host", options.host.empty() ? Json() : Json(options.host)},
            {"epochs", Json::array()},
            {"epochs_left_out", left_out_}};
  for (const EpochReport& epoch : epochs_) json["epochs"].push_back(epoch_json(epoch));
  json["quarantine"] = Json::array();
  for (const Quarantined& bad : stats.quarantine) {
    json["quarantine"].push_back(
        {{"epoch", bad.epoch}, {"position", bad.position}, {"id", bad.id}, {"key", bad.key}, {"reason", bad.reason}});
  }
  json["threads"] = stats.threads;
  json["io"] = stats.io;
  json["ring_slots"] = stats.ring_slots;
  json["cache"] = {
      {"capacity_bytes", stats.cache_capacity}, {"used_bytes", stats.cached_bytes}, {"rewritten", stats.rewritten}};
  json["disk"] = {
      {"capacity_bytes", stats.disk_capacity}, {"used_bytes", stats.disk_used}, {"damaged", stats.disk_damaged}};
  json["requests"] = {{"sent", stats.objects.requests},
                      {"retries", stats.objects.retries},
                      {"hedges", stats.objects.hedges},
                      {"throttled", stats.objects.throttled},
                      {"bytes", stats.objects.bytes}};
  json["cpu_seconds"] = cpu_seconds();
  json["peak_rss_bytes"] = peak_resident_bytes();
  json["memory_budget_bytes"] = stats.memory_budget;
  return json;
}

bool has_disk(const LoaderStats& stats) {
  return stats.disk_capacity > 0;
}

// Files by the engine, objects by requests. A dataset may have both; some of its samples are looked at.
std::string ways_of_reading(const Source& source, const LoaderStats& stats) {
  constexpr std::uint64_t kLooks = 1024;
  bool files = has_disk(stats);
  bool objects = false;
  const std::uint64_t step = std::max<std::uint64_t>(source.size() / kLooks, 1);
  for (SampleId id = 0; id < source.size(); id += step) {
    (source.locate(id).store != nullptr ? objects : files) = true;
  }
  if (!objects) return stats.io;
  return files ? stats.io + " and HTTP requests" : "HTTP requests";
}

// The table grows while the run goes on, so that whoever stops it has seen what there was.
void Run::print_header() const {
  const LoaderStats stats = loader_.stats();
  const Source& source = loader_.source();
  output_.line("{}: {}, {}", source.uri(), counted(source.size(), "sample"), format_bytes(source.total_bytes()));
  output_.line("cache holds {} of a budget of {}; {}, reads by {}", format_bytes(stats.cache_capacity),
               format_bytes(stats.memory_budget), counted(stats.threads, "prep thread"),
               ways_of_reading(source, stats));
  const char* const hashes = options_.hash ? "   order              content" : "";
  if (has_disk(stats)) {
    output_.line("disk cache holds {} of at most {}", format_bytes(stats.disk_used), format_bytes(stats.disk_capacity));
    output_.line("{:>5} {:>7} {:>9} {:>7} {:>7} {:>7} {:>10} {:>10} {:>10}{}", "epoch", "seconds", "samples/s", "busy",
                 "fetch", "prep", "memory", "disk", "source", hashes);
    return;
  }
  output_.line("{:>5} {:>8} {:>9} {:>7} {:>11} {:>10} {:>11} {:>11}{}", "epoch", "seconds", "samples/s", "busy",
               "fetch stall", "prep stall", "from memory", "from source", hashes);
}

void Run::print_epoch(const EpochReport& report) const {
  const EpochStats& epoch = report.stats;
  const std::string busy =
      accelerator_.exists() ? fmt::format("{:.1f} %", 100 * share_of(report.busy, epoch.wall)) : "-";
  const double rate = static_cast<double>(epoch.samples) / std::max(seconds(epoch.wall), 1e-9);
  const double fetch = 100 * share_of(epoch.fetch_stall, epoch.wall);
  const double prep = 100 * share_of(epoch.prep_stall, epoch.wall);
  const std::string hashes =
      options_.hash ? fmt::format("   {}   {}", hex16(report.hash.order), hex16(report.hash.content)) : "";
  if (has_disk(loader_.stats())) {  // one column more, and still no more than 80
    output_.line("{:>5} {:>7.2f} {:>9.0f} {:>7} {:>5.1f} % {:>5.1f} % {:>10} {:>10} {:>10}{}", epoch.epoch,
                 seconds(epoch.wall), rate, busy, fetch, prep, format_bytes(epoch.memory_bytes),
                 format_bytes(epoch.disk_bytes), format_bytes(epoch.source_bytes), hashes);
    return;
  }
  output_.line("{:>5} {:>8.2f} {:>9.0f} {:>7} {:>9.1f} % {:>8.1f} % {:>11} {:>11}{}", epoch.epoch, seconds(epoch.wall),
               rate, busy, fetch, prep, format_bytes(epoch.memory_bytes), format_bytes(epoch.source_bytes), hashes);
}

void Run::print_end() const {
  const LoaderStats stats = loader_.stats();
  if (epochs_.empty()) output_.line("nothing is left to do: the state stands behind epoch {}", options_.epochs - 1);
  if (shared_batches_ > 0) {
    output_.line("{} of {} came from another job of the host", shared_batches_, counted(batches_, "batch", "batches"));
  }
  if (stats.quarantine.empty()) return;
  output_.line("replaced: {}; the first: {} ({}). --json lists all", counted(stats.quarantine.size(), "sample"),
               stats.quarantine[0].key, stats.quarantine[0].reason);
}

Result<Json> run_run(const RunOptions& options, const LoaderFlags& flags, const Output& output) {
  FORELOAD_ASSIGN(LoaderOptions loading, flags.options());
  FORELOAD_ASSIGN(const Accelerator accelerator, Accelerator::parse(options.accelerator));
  loading.epochs = options.epochs;
  loading.warn = [&](const std::string& text) { output.warn(text); };
  auto loader = [&] {
    Progress progress("indexing", "samples", 0);
    loading.source.progress = [&](std::uint64_t done, std::uint64_t total) {
      progress.set_total(total);
      progress.set(done);
    };
    const EndAtOnce while_opening;
    return Loader::open(loading);
  }();
  if (!loader) return std::move(loader).error();
  std::vector<double>().swap(loading.weights);  // the loader has its own form of them
  FORELOAD_ASSIGN(const auto watch, SignalWatch::start(*loader));
  Run run(options, accelerator, *loader, output);
  FORELOAD_TRY(run.open_files());
  if (loading.follow && loader->position().epoch > 0) {
    output.line("follows another job: begins with epoch {}", loader->position().epoch);
  } else if (loading.follow) {
    output.line("there is no job with the same batches to follow: begins with epoch 0");
  }
  FORELOAD_TRY(run.resume());
  FORELOAD_TRY(run.load());
  return run.report(loading);
}

}  // namespace

Command run_command(CLI::App& app) {
  CLI::App* command = add_command(
      app, "run", "Loads epochs into an emulated accelerator; reports throughput, utilisation and stalls by cause",
      kExamples + std::string("\n\n") + wrapped("Accelerators (samples/s): " + accelerator_rates(), kHelpColumns));
  auto options = std::make_shared<RunOptions>();
  auto flags = std::make_shared<LoaderFlags>(*command);
  add_number(*command, "--epochs", options->epochs, "How many; counted from 0 also after --resume and with --follow",
             {.least = 1});
  command
      ->add_option("--accelerator", options->accelerator,
                   "Emulated compute: samples/s, \"none\", or one of the presets below")
      ->capture_default_str();
  command->add_option("--state", options->state, "File that is kept up to date with the position, for --resume");
  command->add_option("--resume", options->resume, "Continue from this saved state");
  command->add_option("--log", options->log, "File that receives a JSON line for every batch");
  command->add_flag("--hash", options->hash, "Compute the hashes of order and content");
  return {command, [options, flags](const Output& output) { return run_run(*options, *flags, output); }};
}

}  // namespace foreload
