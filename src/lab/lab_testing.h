// A machine and a dataset in round numbers, for the tests of this folder.
#pragma once

#include "lab/model.h"

namespace foreload {

inline Figure sure(double value) {
  return {value, value, value, 5};
}

// 10,000 samples of 100 KB, 1 GB; storage 40 MB/s = 400/s, memory 10 GB/s, prep 500/s per core without loss, an
// accelerator of 1000/s.
inline Measured round_numbers() {
  Measured measured;
  measured.samples = 10'000;
  measured.bytes = 1'000'000'000;
  measured.storage = {{1, sure(10e6)}, {32, sure(40e6)}};
  measured.memory = sure(10e9);
  measured.prep = {{1, sure(500)}, {2, sure(1000)}, {4, sure(2000)}};
  measured.accelerator = sure(1000);
  return measured;
}

// Four cores for one accelerator, nothing cached.
inline JobSetup round_setup() {
  JobSetup setup;
  setup.cores = setup.threads = 4;
  setup.batch = 64;
  return setup;
}

}  // namespace foreload
