// A loader fills its homes by itself, at the full speed of storage, before the first batch is asked for: so warming up
// is to open one and to wait.
#include "warm_flags.h"

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "foreload/loader.h"
#include "loader/seams.h"
#include "number_flag.h"
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
  command.add_option("--disk", disk_, "With --warm: folder of the disk cache, as of run")->check(refuse_empty);
  command.add_option("--disk-size", disk_size_, "With --warm: of it at most, as of run");
  add_number(command, "--seed", seed_, "With --warm: of the run to come, when they hold less than all");
  add_number(command, "--world", world_, "With --warm: number of learners of the run to come");
  add_number(command, "--rank", rank_, "With --warm: which of them, because each has a cache of its own");
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

Result<Json> WarmFlags::run(const SourceOptions& from, const Source& source, const Output& output) const {
  if (!warm_) return Json();
  const Time start = now();
  LoaderOptions options;
  options.dataset = from.datasets;
  options.source = from;
  options.source.rebuild_index = false;
  options.source.trust_index = true;  // of a moment ago
  options.source.progress = {};
  options.disk = disk_;
  options.world = world_;
  options.rank = rank_;
  // What memory will hold goes to the disk last, where both together are too small for all.
  options.cache = !memory_.empty();
  options.seed = seed_;
  options.epochs = 1;
  if (!from.tokens) options.chain = {ragged(DType::kU8, source.max_length())};  // bytes as they are
  options.workers = 1;
  options.rewrite = Rewrite::kOff;
  options.warn = [&](const std::string& text) { output.warn(text); };
  FORELOAD_TRY(parse_into(options.memory, memory_, "--memory"));
  FORELOAD_TRY(parse_into(options.disk_bytes, disk_size_, "--disk-size"));
  FORELOAD_ASSIGN(const Loader loader, open_with_seams(options, {.only_fill = true}));
  const Bytes before = loader.stats().disk_used;
  if (loader.stats().disk_capacity == 0) {
    return Error{Code::kIo, fmt::format("nothing was filled: the disk cache {} can not be used now", disk_)};
  }
  const LoaderStats stats = wait_until_filled(loader);
  if (caught_signal() != 0) return Error{Code::kCancelled, "interrupted; what was filled so far stays and counts"};
  if (stats.disk_failure) {
    return Error{Code::kIo,
                 fmt::format("the disk cache has {} of {}, and takes no more: {}", format_bytes(stats.disk_used),
                             format_bytes(source.total_bytes()), *stats.disk_failure)};
  }
  if (stats.read_error) {
    return Error{stats.read_error->code,
                 fmt::format("the disk cache has {} of {}, because a read failed: {}", format_bytes(stats.disk_used),
                             format_bytes(source.total_bytes()), stats.read_error->message)};
  }
  const double taken = seconds(now() - start);
  output.line("{:<12} {} on disk, {} of them now, in {:.1f} s", "warm", format_bytes(stats.disk_used),
              format_bytes(stats.disk_used - before), taken);
  return Json{{"disk_bytes", stats.disk_used}, {"filled_bytes", stats.disk_used - before}, {"seconds", taken}};
}

}  // namespace foreload
