#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"
#include "commands.h"
#include "number_flag.h"
#include "probe/generated_dataset.h"
#include "progress.h"
#include "signals.h"

namespace foreload {

namespace {

constexpr const char* kExamples =
    "  foreload generate data --images 2000              files in 10 class folders\n"
    "  foreload generate data --images 50000 --tar 1000  the same in 50 tar shards\n"
    "The same command again continues where an interrupted one stopped.";

// In single quotes where a shell would not take the text as it is.
std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./+,:@%=").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// What to type next, for this program as it was called.
std::string next_command(const GenerateOptions& options) {
  constexpr std::uint64_t kUsualBatch = 64;
  const std::string dataset = options.shard_images > 0 ? options.folder + "/*.tar" : options.folder;
  std::string command = fmt::format("{} run {} --epochs 2", shell_word(program_invocation_name), shell_word(dataset));
  if (options.images < kUsualBatch) command += fmt::format(" --batch {}", options.images);
  return command;
}

Json to_json(const GenerateOptions& options, const GenerateReport& report, double elapsed) {
  return {{"folder", options.folder},   {"images", report.images}, {"made", report.made},
          {"classes", options.classes}, {"seed", options.seed},    {"shard_images", options.shard_images},
          {"bytes", report.bytes},      {"seconds", elapsed}};
}

Result<Json> run_generate(GenerateOptions options, const Output& output) {
  const Time start = now();
  Result<GenerateReport> report = [&] {
    Progress progress("generating", "images", options.images);
    options.stop = [] { return caught_signal() != 0; };
    options.progress = [&](std::uint64_t done) { progress.set(done); };
    return generate_dataset(options);
  }();
  if (!report) return std::move(report).error();
  const double elapsed = seconds(now() - start);
  output.line("{}: {} in {}, {}, mean {}", options.folder, counted(report->images, "image"),
              counted(options.classes, "class", "classes"), format_bytes(report->bytes),
              format_bytes(report->bytes / report->images));
  if (report->made == 0) {
    output.line("everything was there already");
  } else {
    output.line("made {} in {:.1f} s, {:.0f} images/s", format_count(report->made), elapsed,
                static_cast<double>(report->made) / elapsed);
  }
  output.hint("next: " + next_command(options));
  return to_json(options, *report, elapsed);
}

}  // namespace

Command generate_command(CLI::App& app) {
  CLI::App* command =
      add_command(app, "generate",
                  "Writes a synthetic dataset: JPEGs with ImageNet's sizes, shapes and cost of decoding", kExamples);
  auto options = std::make_shared<GenerateOptions>();
  command->add_option("DIR", options->folder, "Folder to write to: new, empty, or begun by this command")->required();
  add_number(*command, "--images", options->images, "How many");
  add_number(*command, "--seed", options->seed, "The same seed gives the same images");
  add_number(*command, "--classes", options->classes, "Into how many classes they are divided");
  add_number(*command, "--tar", options->shard_images, "Write tar shards of so many images instead of files");
  add_number(*command, "--threads", options->threads, "0: one per core");
  return {command, [options](const Output& output) { return run_generate(*options, output); }};
}

}  // namespace foreload
