// A loader fills its homes by itself, at the full speed of storage, before the first batch is asked for: so warming up
// is to open one and to wait.
#include "warm_flags.h"

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "foreload/loader.h"
#include "progress.h"
#include "signals.h"

namespace foreload {
namespace {

Status parse_into(Bytes& bytes, const std::string& text, const char* flag) {
  if (text.empty()) return {};
  FORELOAD_ASSIGN(bytes, parse_bytes(text));
  if (bytes > 0) return {};
  return Error{Code::kInvalid, fmt::format("{} 0 leaves room for nothing: give a size such as 8GiB", flag)};
}

// Until the disk has all that it is to keep, or a signal comes.
LoaderStats wait_until_filled(const Loader& loader) {
  constexpr auto kLook = std::chrono::milliseconds(20);
  Progress progress("filling", "bytes", loader.source().total_bytes());
  for (;;) {
    const LoaderStats stats = loader.stats();
    if (stats.filled || caught_signal() != 0) return stats;
    progress.set(stats.disk_used);
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

void WarmFlags::declare(CLI::App& command) {
  command.add_flag("--warm", warm_)->description("Fill the disk cache now; needs --disk");
  command.add_option("--disk", disk_, "With --warm: folder of the disk cache, as of run");
  command.add_option("--disk-size", disk_size_, "With --warm: of it at most, as of run");
  command.add_option("--memory", memory_,
                     "With --warm: the budget of the run to come, when disk and memory together "
                     "hold less than all");
}

Status WarmFlags::check() const {
  if (warm_ && disk_.empty()) {
    return Error{Code::kInvalid, "--warm fills a disk cache: name its folder with --disk, as for run"};
  }
  if (warm_ || (disk_.empty() && disk_size_.empty() && memory_.empty())) return {};
  return Error{Code::kInvalid, "--disk, --disk-size and --memory of index are for --warm: add it"};
}

Result<Json> WarmFlags::run(const SourceOptions& source, const Output& output) const {
  if (!warm_) return Json();
  const Time start = now();
  LoaderOptions options;
  options.dataset = source.datasets;
  options.source = source;
  options.source.rebuild_index = false;
  options.source.progress = {};
  options.disk = disk_;
  // What memory will hold goes to the disk last, where both together are too small for all.
  options.cache = !memory_.empty();
  options.epochs = 1;
  options.threads = 1;
  options.rewrite = Rewrite::kOff;
  options.warn = [&](const std::string& text) { output.warn(text); };
  FORELOAD_TRY(parse_into(options.memory, memory_, "--memory"));
  FORELOAD_TRY(parse_into(options.disk_bytes, disk_size_, "--disk-size"));
  FORELOAD_ASSIGN(const Loader loader, Loader::open(options));
  const Bytes before = loader.stats().disk_used;
  const LoaderStats stats = wait_until_filled(loader);
  if (caught_signal() != 0) return Error{Code::kCancelled, "interrupted; what was filled so far stays and counts"};
  const double taken = seconds(now() - start);
  output.line("{:<12} {} on disk, {} of them now, in {:.1f} s", "warm", format_bytes(stats.disk_used),
              format_bytes(stats.disk_used - before), taken);
  return Json{{"disk_bytes", stats.disk_used}, {"filled_bytes", stats.disk_used - before}, {"seconds", taken}};
}

}  // namespace foreload
