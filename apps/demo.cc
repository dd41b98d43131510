// What `make demo` shows: one small training job on slow storage, once with a loader that reads everything in every
// epoch, once with Foreload's cache, side by side, and why they differ. Rates are set from what this machine can
// prepare, so that the picture is the same on any machine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "accelerator.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "foreload/loader.h"
#include "source/warnings.h"
#include "streams.h"

namespace foreload {
namespace {

constexpr Epoch kEpochs = 3;
constexpr std::uint64_t kBatch = 32;
constexpr std::size_t kColumns = 100;      // of the output
constexpr double kAcceleratorShare = 0.7;  // of what this machine can prepare
constexpr double kStorageShare = 0.5;      // of what the accelerator would consume
constexpr double kCacheShare = 0.65;       // of the dataset

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  print_out(fmt::format(format, std::forward<Args>(args)...));
}

struct Setting {
  std::string folder;
  double samples_per_second = 0;  // of the accelerator
  std::string storage;
  Bytes memory = 0;
};

LoaderOptions options_for(const Setting& setting, bool cache) {
  LoaderOptions options;
  options.dataset = {setting.folder};
  options.batch = kBatch;
  options.seed = 1;
  options.epochs = kEpochs;
  options.storage = setting.storage;
  options.memory = setting.memory;
  options.cache = cache;
  options.dtype = DType::kU8;
  options.chain = {random_resized_crop(224), random_flip()};
  return options;
}

Result<LoaderStats> train(LoaderOptions options, const Accelerator& accelerator, const char* what) {
  FORELOAD_ASSIGN(Loader loader, Loader::open(std::move(options)));
  for (Epoch epoch = 0; epoch < kEpochs;) {
    FORELOAD_ASSIGN(const auto batch, loader.next());
    if (batch) {
      accelerator.step(batch->size());
    } else {
      print_err(fmt::format("  {}: epoch {} of {} done\n", what, ++epoch, kEpochs));
    }
  }
  return loader.stats();
}

// Samples per second that all cores can prepare when bytes are in memory.
Result<double> prep_rate(const std::string& folder) {
  Setting setting{.folder = folder, .memory = 0};
  FORELOAD_ASSIGN(Loader loader, Loader::open(options_for(setting, true)));
  for (Epoch epoch = 0; epoch < 2;) {
    FORELOAD_ASSIGN(const auto batch, loader.next());
    if (!batch) ++epoch;
  }
  const EpochStats second = loader.stats().epochs[1];
  return static_cast<double>(second.samples) / seconds(second.wall);
}

// The smallest budget whose cache holds the wanted share of the dataset.
Result<Bytes> budget_for(const Setting& setting, Bytes cached) {
  Bytes low = 16_MiB;
  Bytes high = 16_GiB;
  while (high - low > 1_MiB) {
    LoaderOptions options = options_for(setting, true);
    options.memory = (low + high) / 2;
    auto loader = Loader::open(options);
    (loader.ok() && loader->stats().cache_capacity >= cached ? high : low) = options.memory;
  }
  return high;
}

double share(Duration part, Duration whole) {
  return 100 * seconds(part) / std::max(seconds(whole), 1e-9);
}

void print_rows(const char* name, const LoaderStats& stats, double ideal) {
  for (const EpochStats& epoch : stats.epochs) {
    const double rate = static_cast<double>(epoch.samples) / seconds(epoch.wall);
    print("  {:<16} {:>5} {:>8.1f} s {:>10.0f} {:>11.0f} % {:>10.0f} % {:>9.0f} % {:>14}\n",
          epoch.epoch == 0 ? name : "", epoch.epoch + 1, seconds(epoch.wall), rate, 100 * rate / ideal,
          share(epoch.fetch_stall, epoch.wall), share(epoch.prep_stall, epoch.wall), format_bytes(epoch.source_bytes));
  }
}

void print_table(const LoaderStats& plain, const LoaderStats& cached, double ideal) {
  print("\n  {:<16} {:>5} {:>10} {:>10} {:>13} {:>12} {:>11} {:>14}\n", "", "", "", "", "accelerator", "waits for",
        "waits for", "read from");
  print("  {:<16} {:>5} {:>10} {:>10} {:>13} {:>12} {:>11} {:>14}\n", "loader", "epoch", "time", "samples/s", "busy",
        "storage", "prep", "storage");
  print_rows("reads everything", plain, ideal);
  print_rows("Foreload", cached, ideal);
}

// Prints words, broken into lines of at most kColumns.
void print_paragraph(const std::string& text) {
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    const bool fits = column > 0 && column + 1 + word.size() <= kColumns;
    print("{}{}", fits ? " " : "\n", word);
    column = fits ? column + 1 + word.size() : word.size();
    at = end + 1;
  }
  print("\n");
}

void explain(const LoaderStats& plain, const LoaderStats& cached, const Source& source) {
  const EpochStats& before = plain.epochs.back();
  const EpochStats& after = cached.epochs.back();
  print_paragraph(fmt::format(
      "Why: storage delivers half of what the accelerator consumes, so a loader that reads everything makes it wait "
      "about half of the time. Foreload keeps {} of the {} in memory and never evicts it: from the second epoch on it "
      "reads {} instead of {}, which storage delivers in time. The first epoch has to read everything in both cases.",
      format_bytes(after.memory_bytes), format_bytes(source.total_bytes()), format_bytes(after.source_bytes),
      format_bytes(before.source_bytes)));
  print_paragraph(fmt::format("Epoch {}: {:.2f} times as fast, with the same batches in the same order.", kEpochs,
                              seconds(before.wall) / seconds(after.wall)));
}

void print_setting(const Setting& setting, const Source& source, double prep, Bytes storage) {
  print("\nOne training job on slow storage, loaded in two ways\n\n");
  print("  {:<12} {} JPEG files, {}\n", "dataset", format_count(source.size()), format_bytes(source.total_bytes()));
  print("  {:<12} RandomResizedCrop(224) and flip: at most {:.0f} samples/s on {}\n", "prep", prep,
        counted(usable_cores(), "core"));
  print("  {:<12} consumes {:.0f} samples/s (emulated)\n", "accelerator", setting.samples_per_second);
  print("  {:<12} delivers {}/s, which are {:.0f} samples/s (emulated)\n", "storage", format_bytes(storage),
        kStorageShare * setting.samples_per_second);
  print("  {:<12} a budget of {} for the whole loader\n", "memory", format_bytes(setting.memory));
}

// Ends this program by becoming `foreload run` with the same settings, so that the last table is the command's own.
Status become_run(const Setting& setting) {
  const std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "foreload").string();
  std::vector<std::string> words{program,
                                 "run",
                                 setting.folder,
                                 "--epochs",
                                 fmt::format("{}", kEpochs),
                                 "--batch",
                                 fmt::format("{}", kBatch),
                                 "--seed",
                                 "1",
                                 "--dtype",
                                 "u8",
                                 "--chain",
                                 "random_resized_crop(224), random_flip",
                                 "--storage",
                                 setting.storage,
                                 "--memory",
                                 fmt::format("{}", setting.memory),
                                 "--accelerator",
                                 fmt::format("{:.0f}", setting.samples_per_second)};
  print("\nThe same job with the command:\n\n  foreload run {} --epochs {} --batch {} --dtype u8 \\\n", setting.folder,
        kEpochs, kBatch);
  print("    --chain 'random_resized_crop(224), random_flip' --accelerator {:.0f} \\\n", setting.samples_per_second);
  print("    --storage {} --memory {}\n\n", setting.storage, setting.memory);
  if (!all_printed()) return Error{Code::kIo, "cannot write to standard output"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  return errno_error(fmt::format("cannot start {}", program), errno);
}

Status demo(const std::string& folder) {
  print_err("  measuring how fast this machine prepares samples\n");
  FORELOAD_ASSIGN(const double prep, prep_rate(folder));
  Setting setting{.folder = folder, .samples_per_second = kAcceleratorShare * prep};
  FORELOAD_ASSIGN(const auto source, open_source({.datasets = {folder}}));
  const double mean = static_cast<double>(source->total_bytes()) / static_cast<double>(source->size());
  const auto storage = static_cast<Bytes>(kStorageShare * setting.samples_per_second * mean);
  setting.storage = fmt::format("{}B/s,2ms", storage);
  FORELOAD_ASSIGN(setting.memory,
                  budget_for(setting, static_cast<Bytes>(kCacheShare * static_cast<double>(source->total_bytes()))));
  FORELOAD_ASSIGN(const Accelerator accelerator, Accelerator::parse(fmt::format("{}", setting.samples_per_second)));
  FORELOAD_ASSIGN(const LoaderStats plain, train(options_for(setting, false), accelerator, "reading everything"));
  FORELOAD_ASSIGN(const LoaderStats cached, train(options_for(setting, true), accelerator, "Foreload"));

  print_setting(setting, *source, prep, storage);
  print_table(plain, cached, setting.samples_per_second);
  explain(plain, cached, *source);
  return become_run(setting);
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  if (argc != 2) {
    foreload::print_err("usage: foreload-demo FOLDER\n");
    return 2;
  }
  const foreload::Status status = foreload::demo(argv[1]);
  if (status.ok()) return foreload::all_printed() ? 0 : 1;
  foreload::print_err(fmt::format("foreload-demo: {}\n", foreload::printable(status.error().message, 4000)));
  return 1;
}
