#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "commands.h"
#include "foreload/source.h"
#include "number_flag.h"
#include "probe/dimension_scan.h"
#include "progress.h"
#include "signals.h"
#include "source/local_source.h"
#include "subset.h"
#include "token_flags.h"
#include "warm_flags.h"

namespace foreload {

namespace {

constexpr const char* kExamples =
    "  foreload index imagenet/train                 build or show the index\n"
    "  foreload index 'shards/train-{000..009}.tar'  of tar shards\n"
    "  foreload index imagenet/train --dimensions    read every header once, and\n"
    "                                                keep width and height\n"
    "  foreload index s3://bucket/train/ --warm --disk /ssd/cache\n"
    "                                                fill the disk cache now\n"
    "  foreload index imagenet/train --list          id, name, bytes, label";

struct IndexOptions {
  SourceOptions source;
  std::string subset;
  TokenFlags tokens;
  bool dimensions = false;
  bool list = false;
  WarmFlags warm;
};

// Of one quantity over all samples.
struct Spread {
  std::uint64_t least = 0, low = 0, median = 0, high = 0, most = 0;
  double mean = 0;
};

std::optional<Spread> spread_of(std::vector<std::uint64_t> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<double>(value);
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  return Spread{at(0), at(0.05), at(0.5), at(0.95), at(1), sum / static_cast<double>(values.size())};
}

Json to_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"min", spread->least}, {"p5", spread->low},   {"p50", spread->median},
          {"p95", spread->high},  {"max", spread->most}, {"mean", spread->mean}};
}

struct Summary {
  std::uint64_t labelled = 0;
  std::uint64_t empty = 0;
  std::uint64_t with_dimensions = 0;
  std::optional<Spread> length, width, height, pixels;
};

Summary summarise(const Source& source) {
  Summary summary;
  std::vector<std::uint64_t> lengths, widths, heights, pixels;
  lengths.reserve(source.size());
  for (SampleId id = 0; id < source.size(); ++id) {
    lengths.push_back(source.length(id));
    summary.labelled += source.label(id) != kNoLabel ? 1 : 0;
    summary.empty += source.length(id) == 0 ? 1 : 0;
    if (const std::optional<Dimensions> size = source.dimensions(id)) {
      widths.push_back(size->width);
      heights.push_back(size->height);
      pixels.push_back(std::uint64_t{size->width} * size->height);
    }
  }
  summary.with_dimensions = widths.size();
  summary.length = spread_of(std::move(lengths));
  summary.width = spread_of(std::move(widths));
  summary.height = spread_of(std::move(heights));
  summary.pixels = spread_of(std::move(pixels));
  return summary;
}

Json to_json(const Source& source, const Summary& summary, double elapsed) {
  Json report;
  report["dataset"] = {{"uri", source.uri()},
                       {"fingerprint", hex16(source.fingerprint())},
                       {"samples", source.size()},
                       {"bytes", source.total_bytes()}};
  report["classes"] = source.classes();
  report["labelled"] = summary.labelled;
  report["empty"] = summary.empty;
  report["length"] = to_json(summary.length);
  report["dimensions"] = {{"known", summary.with_dimensions},
                          {"width", to_json(summary.width)},
                          {"height", to_json(summary.height)},
                          {"pixels", to_json(summary.pixels)}};
  report["seconds"] = elapsed;
  return report;
}

template <typename Format>
void print_spread(const Output& output, const char* name, const std::optional<Spread>& spread, const Format& text) {
  if (!spread) return;
  output.line("{:<12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}", name, text(spread->least), text(spread->low),
              text(spread->median), text(spread->high), text(spread->most),
              text(static_cast<std::uint64_t>(spread->mean + 0.5)));
}

void print(const Output& output, const Source& source, const Summary& summary) {
  output.line("{:<12} {}", "dataset", source.uri());
  output.line("{:<12} {} in {} ({} with label)", "samples", format_count(source.size()),
              format_bytes(source.total_bytes()), format_count(summary.labelled));
  const std::vector<std::string> classes = source.classes();
  if (classes.size() == 1) output.line("{:<12} 1 ({})", "classes", classes[0]);
  if (classes.size() > 1) {
    output.line("{:<12} {} ({} … {})", "classes", format_count(classes.size()), classes.front(), classes.back());
  }
  if (summary.empty > 0) output.line("{:<12} {} without bytes", "empty", counted(summary.empty, "sample"));
  if (summary.with_dimensions == 0) {
    output.line("{:<12} not collected yet; --dimensions does", "dimensions");
  } else {
    output.line("{:<12} known for {}", "dimensions", format_count(summary.with_dimensions));
  }
  output.line("{:<12} {}", "fingerprint", hex16(source.fingerprint()));
  output.line("{:<12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}", "", "min", "5 %", "median", "95 %", "max", "mean");
  print_spread(output, "length", summary.length, format_bytes);
  print_spread(output, "width", summary.width, format_count);
  print_spread(output, "height", summary.height, format_count);
  print_spread(output, "pixels", summary.pixels, format_count);
}

// A line per sample, to be cut at its tabs: id, key, bytes, label; the last is empty where there is none.
void print_list(const Source& source) {
  constexpr std::size_t kAtOnce = 64 << 10;
  std::string text;
  for (SampleId id = 0; id < source.size() && caught_signal() == 0; ++id) {
    const std::int64_t label = source.label(id);
    text += fmt::format("{}\t{}\t{}\t{}\n", id, printable(source.key(id), kLongestLine), source.length(id),
                        label != kNoLabel ? std::to_string(label) : "");
    if (text.size() < kAtOnce) continue;
    print_out(text);
    text.clear();
  }
  print_out(text);
}

Json list_json(const Source& source) {
  Json list = Json::array();
  for (SampleId id = 0; id < source.size(); ++id) {
    const std::int64_t label = source.label(id);
    list.push_back({{"id", id},
                    {"key", source.key(id)},
                    {"bytes", source.length(id)},
                    {"label", label != kNoLabel ? Json(label) : Json()}});
  }
  return list;
}

Result<std::unique_ptr<Source>> open_with_progress(SourceOptions options, const Output& output) {
  Progress progress("indexing", "samples", 0);
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.set_total(total);
    progress.set(done);
  };
  options.warn = [&](const std::string& text) { output.warn(text); };
  const EndAtOnce while_opening;
  return open_source(options);
}

// Reads the headers, stores what they say beside the index, and opens the source again to see it.
Result<std::unique_ptr<Source>> collect_dimensions(std::unique_ptr<Source> source, const SourceOptions& options,
                                                   const Output& output) {
  DimensionScanOptions scan;
  Progress progress("reading headers", "samples", source->size());
  scan.stop = [] { return caught_signal() != 0; };
  scan.progress = [&](std::uint64_t done) { progress.set(done); };
  FORELOAD_ASSIGN(const DimensionScan found, scan_dimensions(*source, scan));
  if (found.unknown > 0) {
    output.warn(fmt::format("without dimensions: {}; the first: {}", counted(found.unknown, "sample"), found.example));
  }
  FORELOAD_TRY(store_dimensions(*source, found.dimensions));
  SourceOptions again = options;
  again.rebuild_index = false;
  again.trust_index = true;  // of a moment ago
  return open_source(again);
}

Result<Json> run_index(IndexOptions options, const Output& output) {
  const Time start = now();
  FORELOAD_TRY(options.warm.check());
  FORELOAD_ASSIGN(options.source.subset, parse_subset(options.subset));
  FORELOAD_TRY(options.tokens.apply(options.source));
  FORELOAD_ASSIGN(std::unique_ptr<Source> source, open_with_progress(options.source, output));
  if (options.dimensions) {
    FORELOAD_ASSIGN(source, collect_dimensions(std::move(source), options.source, output));
  }
  const Summary summary = summarise(*source);
  if (!options.list) print(output, *source, summary);
  if (options.list && !output.json()) print_list(*source);
  FORELOAD_ASSIGN(const Json warmed, options.warm.run(options.source, *source, output));
  Json report = to_json(*source, summary, seconds(now() - start));
  if (!warmed.is_null()) report["warm"] = warmed;
  if (options.list && output.json()) report["list"] = list_json(*source);
  return report;
}

}  // namespace

Command index_command(CLI::App& app) {
  CLI::App* command =
      add_command(app, "index", "Builds or shows the index of a dataset: count, bytes, classes, dimensions", kExamples);
  auto options = std::make_shared<IndexOptions>();
  SourceOptions& source = options->source;
  command
      ->add_option("URI", source.datasets,
                   "Folder, tar file, list of tars, or URL (http, https, s3); several are concatenated")
      ->required();
  command->add_option("--subset", options->subset, "Only these: ids or keys, \"0,5,7\" or @FILE with one per line");
  options->tokens.declare(*command);
  command->add_option("--label-field", source.label_field, "Field of a tar's JSON members that holds the label")
      ->capture_default_str();
  command->add_option("--index-folder", source.index_folder, "Where the index is kept, instead of beside the dataset");
  add_number(*command, "--threads", source.threads, "0: one per core");
  command->add_flag("--rebuild", source.rebuild_index)->description("Ignore the index that is there");
  command->add_flag("--dimensions", options->dimensions)->description("Read every header once, and keep what it says");
  command->add_flag("--list", options->list)
      ->description("Print id, name, bytes and label of every sample, with tabs between");
  options->warm.declare(*command);
  return {command, [options](const Output& output) { return run_index(*options, output); }};
}

}  // namespace foreload
