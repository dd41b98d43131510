#include "progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "streams.h"

namespace foreload {

namespace {

constexpr Duration kInterval = std::chrono::milliseconds(100);

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string progress_line(const ProgressState& state, std::size_t columns) {
  const bool knows_total = state.total > 0 && state.total >= state.done;
  std::string total, unit, percent, rate, left, note;
  if (state.total > 0) total = " / " + format_count(state.total);
  if (!state.unit.empty()) unit = " " + state.unit;
  if (knows_total) percent = fmt::format("  {} %", state.done * 100 / state.total);
  if (state.rate > 0) rate = fmt::format("  {}/s", format_count(static_cast<std::uint64_t>(state.rate + 0.5)));
  if (state.rate > 0 && knows_total) {
    left = fmt::format("  {} left", clock_text(static_cast<double>(state.total - state.done) / state.rate));
  }
  if (!state.note.empty()) note = "  " + state.note;
  std::string line;
  for (std::string* least : {&unit, &total, &percent, &rate, &note, &left}) {
    line =
        fmt::format("{}  {}{}{}{}{}{}{}", state.what, format_count(state.done), total, unit, percent, rate, left, note);
    if (line.size() <= columns) return line;
    least->clear();
  }
  return fmt::format("{}  {}", state.what, format_count(state.done)).substr(0, columns);
}

Progress::Progress(std::string what, std::string unit, std::uint64_t total)
    : what_(std::move(what)), unit_(std::move(unit)), terminal_(stderr_is_terminal()), total_(total) {}

Progress::~Progress() {
  const MutexLock lock(mutex_);
  if (shown_) print_err("\r\x1b[K");
}

void Progress::set_total(std::uint64_t total) {
  const MutexLock lock(mutex_);
  total_ = total;
}

void Progress::set(std::uint64_t done, const std::string& note) {
  if (!terminal_) return;
  const MutexLock lock(mutex_);
  const Time time = now();
  if (started_ == Time{}) {
    started_ = printed_ = time;
    first_ = done;
  }
  if (time - printed_ < kInterval) return;
  printed_ = time;
  print(done, note);
}

void Progress::print(std::uint64_t done, const std::string& note) {
  const double elapsed = seconds(printed_ - started_);
  const double rate = done > first_ && elapsed > 0 ? static_cast<double>(done - first_) / elapsed : 0;
  print_err("\r\x1b[K" + progress_line({what_, unit_, done, total_, rate, note}, terminal_width() - 1));
  shown_ = true;
}

}  // namespace foreload
