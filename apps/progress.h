// Progress: one line on standard error that says how far a command is, how fast, and how long it will
// still take. Nothing at all is printed when standard error is no terminal. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace foreload {

class Progress {
 public:
  // `unit`: what is counted, "images". `total` 0: not known yet.
  Progress(std::string what, std::string unit, std::uint64_t total);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // At most ten times a second something is printed. `note` ends the line.
  void set(std::uint64_t done, const std::string& note = {});
  void set_total(std::uint64_t total);

 private:
  void print(std::uint64_t done, const std::string& note) FORELOAD_REQUIRES(mutex_);

  const std::string what_;
  const std::string unit_;
  const bool terminal_;
  Mutex mutex_;
  std::uint64_t total_ FORELOAD_GUARDED_BY(mutex_);
  std::uint64_t first_ FORELOAD_GUARDED_BY(mutex_) = 0;  // what was done at the first call
  Time started_ FORELOAD_GUARDED_BY(mutex_){};
  Time printed_ FORELOAD_GUARDED_BY(mutex_){};
  bool shown_ FORELOAD_GUARDED_BY(mutex_) = false;
};

// "writing  1,200 / 10,000 images  12 %  145/s  1:01 left": what Progress prints, without the terminal.
struct ProgressState {
  std::string what;
  std::string unit;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known
  double rate = 0;          // per second
  std::string note;
};
// What matters least is left out, one thing after the other, until the line has at most `columns` characters.
std::string progress_line(const ProgressState& state, std::size_t columns);

}  // namespace foreload
