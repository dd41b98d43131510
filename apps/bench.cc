// `foreload bench`: what this machine can do with a dataset, stage by stage, each rate beside its limit.
// `foreload bench prep`: what JPEG prep costs on one core, against its limits and against others.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <sstream>

#include "base/machine.h"
#include "base/text.h"
#include "commands.h"
#include "help_layout.h"
#include "loader/setup.h"
#include "loader_flags.h"
#include "number_flag.h"
#include "probe/loader_rates.h"
#include "probe/prep_rates.h"
#include "progress.h"
#include "signal_watch.h"
#include "signals.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr const char* kExamples =
    "  foreload bench data/train                    stage by stage, on all cores\n"
    "  foreload bench data/train --chain 'resize(256), center_crop(224), normalize'\n"
    "  foreload bench prep --photos data/train      decode, resize and normalise,\n"
    "                                               against their limits\n"
    "`make bench` in the source tree runs the benchmarks of the README's table.";

// The flags of the whole command are not shown by CLI11 in the help of a part.
constexpr const char* kPrepFooter =
    "Also:\n"
    "  --json                      Print one JSON object instead of text, with how\n"
    "                              each figure is measured\n"
    "  --rounds UINT=5             Interleaved rounds of which the median is taken\n\n"
    "Examples:\n"
    "  foreload bench prep                            synthetic pictures\n"
    "  foreload bench prep --photos data/train        yours\n"
    "  foreload bench prep --json | jq .figures       for programs";

constexpr Bytes kMostMeasured = 256_MiB;  // of the dataset

struct Rates {
  double read_bytes = 0;  // per second, plain loop over files
  double chain_one = 0;   // samples per second, one thread
  double chain_all = 0;   // all threads, no loader
  double loader = 0;      // next(), samples in memory
};

Result<Loader> open_loader(const LoaderOptions& options) {
  const EndAtOnce while_opening;
  return Loader::open(options);
}

// Medians over interleaved rounds: on a busy machine all rates of a round suffer alike.
Result<Rates> measure(const LoaderOptions& options, unsigned rounds, Duration window) {
  FORELOAD_ASSIGN(Loader loader, open_loader(options));
  FORELOAD_ASSIGN(const auto watch, SignalWatch::start(loader));
  const Source& source = loader.source();
  FORELOAD_ASSIGN(const LoadedSamples samples, load_samples(source, kMostMeasured));
  FORELOAD_ASSIGN(const ChainOptions chosen, choose_chain(options, source));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile(chosen));
  const unsigned threads = loader.stats().threads;
  std::vector<double> read, one, all, ours;
  Progress progress("measuring", "rounds", rounds + 1);
  for (unsigned round = 0; round <= rounds; ++round) {
    if (caught_signal() != 0) return Error{Code::kCancelled, "stopped by a signal"};
    progress.set(round);
    wait_until_idle();
    FORELOAD_ASSIGN(const double r, read_rate(source, window / 4));
    FORELOAD_ASSIGN(const double c1, chain_rate(samples, chain, 1, window / 2));
    FORELOAD_ASSIGN(const double cn, chain_rate(samples, chain, threads, window));
    FORELOAD_ASSIGN(const double l, loader_rate(loader, window));
    if (round == 0) continue;  // fills the cache
    read.push_back(r);
    one.push_back(c1);
    all.push_back(cn);
    ours.push_back(l);
  }
  return Rates{median(read), median(one), median(all), median(ours)};
}

Result<Json> run_bench(const LoaderFlags& flags, unsigned rounds, const Output& output) {
  FORELOAD_ASSIGN(LoaderOptions options, flags.options());
  options.warn = [&](const std::string& text) { output.warn(text); };
  if (options.workers == 0u)
    return Error{Code::kInvalid, "bench measures prep in this process: --workers 0 leaves none"};
  const unsigned threads = options.workers.value_or(usable_cores());
  FORELOAD_ASSIGN(const Rates rates, measure(options, rounds, 1000ms));
  const auto line = [&](const std::string& stage, const std::string& rate, const std::string& limit) {
    output.line("{:<34} {:>17}/s   {}", stage, rate, limit);
  };
  const auto samples = [](double rate) { return fmt::format("{:.0f} samples", rate); };
  output.line("{:<34} {:>19}   {}", "stage", "rate", "against its limit");
  line("reading, one plain loop", format_bytes(static_cast<Bytes>(rates.read_bytes)), "");
  line("prep, one thread", samples(rates.chain_one), "");
  line(fmt::format("prep, {}, no loader", counted(threads, "thread")), samples(rates.chain_all),
       fmt::format("{:.0f} % of {} x one thread", 100 * rates.chain_all / rates.chain_one / threads, threads));
  line("loader, samples in memory", samples(rates.loader),
       fmt::format("{:.1f} % of prep without a loader", 100 * rates.loader / rates.chain_all));
  return Json{{"threads", threads},
              {"read_bytes_per_s", rates.read_bytes},
              {"prep_one_thread_samples_per_s", rates.chain_one},
              {"prep_all_threads_samples_per_s", rates.chain_all},
              {"loader_samples_per_s", rates.loader},
              {"loader_against_prep", rates.loader / rates.chain_all}};
}

// Text of any length, in lines that fit a terminal.
void print_wrapped(const Output& output, const std::string& text) {
  std::istringstream lines(wrapped(text, kHelpColumns));
  for (std::string line; std::getline(lines, line);) output.line("{}", line);
}

Result<Json> run_bench_prep(PrepRatesOptions options, const Output& output) {
  options.stop = [] { return caught_signal() != 0; };
  FORELOAD_ASSIGN(const PrepReport report, [&] {
    Progress progress("measuring", "rounds", options.rounds + 1);  // wiped before the table begins
    options.progress = [&](unsigned done) { progress.set(done + 1); };
    return measure_prep(options);
  }());
  Json figures = Json::array();
  output.line("{:<36} {:>8} {:<6}   {}", "figure", "measured", "", "goal");
  for (const PrepFigure& figure : report.figures) {
    const std::string goal = fmt::format("{} {}", figure.at_least ? "≥" : "≤", figure.goal);
    const char* mark = figure.ok() ? "met" : "missed";
    output.line("{:<36} {:>8.3f} {:<6}   {:<6} {}", figure.name, figure.value, figure.unit, goal, mark);
    figures.push_back({{"name", figure.name},
                       {"value", figure.value},
                       {"unit", figure.unit},
                       {"goal", goal},
                       {"ok", figure.ok()},
                       {"how", figure.how}});
  }
  print_wrapped(output, fmt::format("images per second of one core: {}", fmt::join(report.rates, ", ")));
  for (const std::string& reason : report.skipped) print_wrapped(output, "not measured: " + reason);
  print_wrapped(output, report.advice);
  output.line("of {}; --json says how each figure is measured",
              options.photos.empty() ? "synthetic JPEGs" : "photographs");
  return Json{{"figures", figures}, {"skipped", report.skipped}, {"advice", report.advice}};
}

// The flags of the whole command follow `prep`, too.
CLI::App& add_prep(CLI::App& command, PrepRatesOptions& options) {
  CLI::App& prep =
      *command.add_subcommand("prep", "What JPEG prep costs on one core, against its limits; --json says how");
  prep.fallthrough();
  prep.footer(kPrepFooter);
  prep.add_option("--photos", options.photos, "Folder of JPEGs; default: synthetic ones");
  add_number(prep, "--images", options.images, "Pictures of a round", {1, 100'000});
  prep.add_option("--python", options.python, "Interpreter with Pillow and torchvision, to compare with")
      ->capture_default_str();
  return prep;
}

}  // namespace

Command bench_command(CLI::App& app) {
  CLI::App* command = add_command(
      app, "bench", "Measures each stage and the whole loader against the limits of this machine", kExamples);
  auto flags = std::make_shared<LoaderFlags>(*command);
  auto rounds = std::make_shared<unsigned>(5);
  add_number(*command, "--rounds", *rounds, "Interleaved rounds of which the median is taken", {1, 100});
  auto prep_options = std::make_shared<PrepRatesOptions>();
  CLI::App* prep = &add_prep(*command, *prep_options);
  CLI::Option* uri = command->get_option("URI")->required(false);
  return {command, [=](const Output& output) -> Result<Json> {
            prep_options->rounds = *rounds;
            if (prep->parsed()) return run_bench_prep(*prep_options, output);
            if (uri->empty()) return Error{Code::kInvalid, "URI is required (see foreload bench --help)"};
            return run_bench(*flags, *rounds, output);
          }};
}

}  // namespace foreload
