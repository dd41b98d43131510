#include "record/convert.h"

#include <fmt/core.h>

#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/text.h"
#include "commands.h"
#include "number_flag.h"
#include "progress.h"
#include "signals.h"
#include "subset.h"

namespace foreload {

namespace {

constexpr const char* kExamples =
    "  foreload convert imagenet/train records      then: foreload run records\n"
    "  foreload convert 'train-{000..099}.tar' out --shuffle 7 --shard-size 1GB\n"
    "  foreload convert photos small --max-side 512 --quality 85     with loss\n"
    "The same command again continues where an interrupted one stopped.\n"
    "SRC is only read.";

struct ConvertFlags {
  ConvertOptions options;
  std::string source;
  std::string subset;
  std::string shard_size = "256MiB";
  std::string on_error = "fail";
  std::uint64_t shuffle = 0;
};

Json to_json(const ConvertOptions& options, const ConvertReport& report, double elapsed) {
  Json json;
  json["source"] = {{"uri", report.source_uri},
                    {"fingerprint", hex16(report.source_fingerprint)},
                    {"samples", report.samples},
                    {"bytes", report.source_bytes}};
  json["destination"] = {{"folder", options.destination},
                         {"fingerprint", hex16(report.fingerprint)},
                         {"shards", report.shards},
                         {"bytes", report.bytes}};
  json["samples"] = report.samples;
  json["made"] = report.made;
  json["outcomes"] = {{"rewritten", report.rewritten},
                      {"shrunk", report.shrunk},
                      {"copied", report.copied},
                      {"damaged", report.damaged},
                      {"bad", report.bad.size()}};
  json["lossy"] = nullptr;
  if (options.max_side > 0) json["lossy"] = {{"max_side", options.max_side}, {"quality", options.quality}};
  json["bad"] = Json::array();
  for (const BadSample& bad : report.bad) {
    json["bad"].push_back({{"id", bad.id}, {"key", bad.key}, {"reason", bad.reason}});
  }
  json["threads"] = report.threads;
  json["seconds"] = elapsed;
  json["images_per_s"] = elapsed > 0 ? static_cast<double>(report.made) / elapsed : 0.0;
  json["cpu_seconds"] = cpu_seconds();
  json["peak_rss_bytes"] = peak_resident_bytes();
  return json;
}

void print(const Output& output, const ConvertOptions& options, const ConvertReport& report, double elapsed) {
  const double ratio = report.source_bytes > 0
                           ? 100.0 * static_cast<double>(report.bytes) / static_cast<double>(report.source_bytes)
                           : 100.0;
  output.line("{}: {} in {}, {} ({:.1f} % of the source)", options.destination, counted(report.samples, "sample"),
              counted(report.shards, "shard"), format_bytes(report.bytes), ratio);
  output.line("{} made crop-addressable, {} copied as they are{}", format_count(report.rewritten),
              format_count(report.copied + report.damaged + report.bad.size()),
              report.damaged > 0 ? fmt::format(" ({} of them damaged)", format_count(report.damaged)) : "");
  if (options.max_side > 0) {
    output.line("{} shrunk with loss: longer side at most {}, quality {}", format_count(report.shrunk),
                options.max_side, options.quality);
  }
  for (const BadSample& bad : report.bad) output.line("bad: sample {} ({}): {}", bad.id, bad.key, bad.reason);
  if (report.made == 0) {
    output.line("everything was there already");
  } else {
    output.line("{} in {:.1f} s, {:.0f} images/s with {}", format_count(report.made), elapsed,
                static_cast<double>(report.made) / elapsed, counted(report.threads, "thread"));
  }
}

Result<ConvertOptions> options_of(const ConvertFlags& flags, bool shuffles) {
  ConvertOptions options = flags.options;
  options.source.datasets = {flags.source};
  options.source.threads = options.threads;
  FORELOAD_ASSIGN(options.source.subset, parse_subset(flags.subset));
  FORELOAD_ASSIGN(options.shard_bytes, parse_bytes(flags.shard_size));
  if (shuffles) options.shuffle_seed = flags.shuffle;
  if (flags.on_error != "fail" && flags.on_error != "keep") {
    return Error{Code::kInvalid, fmt::format("--on-error \"{}\" is unknown: choose fail or keep", flags.on_error)};
  }
  options.on_bad = flags.on_error == "keep" ? OnBadSample::kKeep : OnBadSample::kFail;
  return options;
}

Result<ConvertReport> convert_with_progress(ConvertOptions& options, const Output& output) {
  // Until the plan is made nothing is written, and the scan can not be asked to stop.
  std::optional<EndAtOnce> while_opening(std::in_place);
  std::optional<Progress> indexing(std::in_place, "indexing", "samples", 0);
  Progress progress("converting", "samples", 0);
  options.source.progress = [&](std::uint64_t done, std::uint64_t total) {
    indexing->set_total(total);
    indexing->set(done);
  };
  options.source.warn = [&](const std::string& text) { output.warn(text); };
  options.stop = [] { return caught_signal() != 0; };
  options.planned = [&](std::uint64_t samples) {
    while_opening.reset();
    indexing.reset();
    progress.set_total(samples);
  };
  options.progress = [&](std::uint64_t done) { progress.set(done); };
  return convert_dataset(options);
}

Result<Json> run_convert(const ConvertFlags& flags, bool shuffles, const Output& output) {
  FORELOAD_ASSIGN(ConvertOptions options, options_of(flags, shuffles));
  // A limit on file sizes is an error of write() then, and does not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  const Time start = now();
  Result<ConvertReport> report = convert_with_progress(options, output);
  if (!report) return std::move(report).error();
  const double elapsed = seconds(now() - start);
  print(output, options, *report, elapsed);
  return to_json(options, *report, elapsed);
}

}  // namespace

Command convert_command(CLI::App& app) {
  CLI::App* command = add_command(
      app, "convert",
      "Turns a folder or tars into tar shards that load faster: JPEGs are rewritten, without loss, so that only the "
      "crop has to be decoded",
      kExamples);
  auto flags = std::make_shared<ConvertFlags>();
  ConvertOptions& o = flags->options;
  command->add_option("SRC", flags->source, "Folder, tar file, list of tars (train-{000..009}.tar), or URL")
      ->required();
  command->add_option("DST", o.destination, "Folder to write to: new, empty, or begun by the same command")->required();
  command->add_option("--shard-size", flags->shard_size, "Bytes of the source that go into one shard")
      ->capture_default_str();
  CLI::Option* shuffle = add_number(*command, "--shuffle", flags->shuffle,
                                    "Order the samples at random, by this seed; default: as in SRC");
  shuffle->default_str("");
  command->add_flag("--keep-original", o.keep_original,
                    "Copy every sample as it is (images are still decoded once, to find bad ones)");
  add_number(*command, "--max-side", o.max_side, "Shrink larger images to this, as JPEG (with loss); default: never",
             {.least = 1, .most = 65500})
      ->default_str("");
  add_number(*command, "--quality", o.quality, "Of images that --max-side shrinks", {.least = 1, .most = 100});
  command->add_option("--on-error", flags->on_error, "A bad sample: fail, or keep (copy it as it is and list it)")
      ->capture_default_str();
  command->add_option("--subset", flags->subset,
                      "Ids or keys, separated by commas, or @FILE with one per line: take only these");
  command->add_option("--label-field", o.source.label_field, "Field of a tar's JSON members that holds the label")
      ->capture_default_str();
  add_number(*command, "--threads", o.threads, "0: one per core", {.most = 1024});
  return {command,
          [flags, shuffle](const Output& output) { return run_convert(*flags, shuffle->count() > 0, output); }};
}

}  // namespace foreload
