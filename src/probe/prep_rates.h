// measure_prep: what JPEG prep costs on one core, as ratios against its limits and against others, all measured
// interleaved in one run: RandomResizedCrop(224) + flip + normalise to f32 NCHW, bytes in memory, CPU time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "foreload/result.h"

namespace foreload {

struct PrepRatesOptions {
  std::string photos;  // folder of JPEGs, searched deeply; empty: synthetic ones
  unsigned images = 96;
  unsigned rounds = 7;                          // of which the median is taken
  std::string python = "/usr/bin/python3";      // for the comparisons with Pillow and torchvision
  std::function<bool()> stop;                   // asked between measurements; true ends with kCancelled
  std::function<void(unsigned done)> progress;  // rounds
};

struct PrepFigure {
  std::string name;
  double value = 0;
  std::string unit;
  double goal = 0;
  bool at_least = true;  // larger is better; otherwise smaller is
  std::string how;

  bool ok() const { return at_least ? value >= goal : value <= goal; }
};

struct PrepReport {
  std::vector<PrepFigure> figures;
  std::vector<std::string> skipped;  // what could not be measured, and why
  std::vector<std::string> rates;    // images per second behind the ratios, for people
  std::string advice;                // what Decode::kFast would gain on these pictures
};

Result<PrepReport> measure_prep(const PrepRatesOptions& options);

}  // namespace foreload
