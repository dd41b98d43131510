// The measurements of `foreload analyze`: what this machine and a dataset give, in repeated short windows over a sample
// of it that the seed chooses. Nothing is written but the dataset's index, where there is none, and temporary folders,
// which are gone at every return; time and bytes are bounded; what can not be known stands in Measured::missing with
// the reason. docs/design/analyze.md says how.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/types.h"
#include "lab/measured.h"

namespace foreload {

struct MeasureOptions {
  Bytes most_bytes = 2'000'000'000;          // read in all
  Duration time = std::chrono::seconds(50);  // for everything after the dataset is open; a third is usually enough
  std::string scratch{};                     // where temporary folders are made; empty: TMPDIR, or /tmp
  double accelerator = 0;                    // samples per second, as given; copied. 0: not known
  double storage = 0;                        // bytes per second of the dataset's storage, if known: for compare_forms
  double network = 0;                        // bytes per second between hosts, as given; copied. 0: not known
  // The same, measured for so long in samples of that length. Empty: there are no other hosts.
  std::function<Result<double>(Bytes length, Duration time)> peers{};
  std::function<void(const std::string& stage, double share)> progress{};  // share: of the whole, 0 … 1
  std::function<void()> opened{};  // the dataset is open: from here on, stop() is heeded and temporary folders exist
  std::function<bool()> stop{};    // asked often; true ends with kCancelled
};

// `options` as for Loader::open: dataset, chain, dtype, batch, seed, disk, storage, io, … Opens the dataset first.
Result<Measured> measure(const LoaderOptions& options, const MeasureOptions& how);

// One pass over the same samples, in one form, nothing kept, cold where that is possible.
struct FormRun {
  std::uint64_t requests = 0;        // to storage: reads, and files opened for one of them
  Bytes bytes = 0;                   // read
  Bytes stored = 0;                  // that the samples take there
  std::vector<ReadAt> read_share{};  // of a sample, that a loader reads which has come to know the storage
  double cpu_seconds = 0;
  double samples_per_s = 0;

  bool known() const { return samples_per_s > 0; }
};

struct Forms {
  std::uint64_t samples = 0;  // of the dataset that were taken
  Bytes bytes = 0;            // as they are in it
  FormRun raw;                // one file each
  FormRun record;             // tar shards with an index, bytes as they were
  FormRun crop_addressable;   // the same, JPEGs rewritten. Not known: nothing could be
  bool cold = false;          // past the page cache; otherwise the rates are those of warm files
  std::vector<Measured::Missing> missing;
};

// Copies a sample of the dataset, at most 256 samples and 64 MB, into a temporary folder, as files, as records and as
// crop-addressable records, and loads each with the options' chain, threads and emulated storage, keeping nothing.
Result<Forms> compare_forms(const LoaderOptions& options, const MeasureOptions& how);

struct RateOptions {
  double accelerator = 0;                    // samples per second of an emulated one; 0: takes batches at once
  std::uint64_t most_samples = 0;            // of the dataset, chosen by the seed; 0: all that the options name
  std::optional<double> cached{};            // share of their bytes that is kept in memory; nothing: as the options say
  Epoch warm_up = 1;                         // epochs that do not count: the cache fills
  Epoch most_epochs = 5;                     // that count
  Duration time = std::chrono::seconds(10);  // after which no further epoch begins, once three count
  std::function<bool()> stop{};
};

// What the real loader delivers: every epoch is a window. `LoaderOptions::epochs` is ignored: the loader reads ahead
// beyond the last one, as in the middle of a training. An epoch should have a thousand samples: of fewer, many are
// still on their way from storage when the next epoch needs them again, which no prediction foresees.
struct MeasuredRate {
  Figure samples_per_s;
  std::uint64_t samples = 0;  // of an epoch
  Bytes bytes = 0;
  double cached = 0;       // share of the bytes that came from memory
  double fetch_stall = 0;  // shares of the wall time
  double prep_stall = 0;
  double cpu_seconds = 0;  // of this process, per sample
};
Result<MeasuredRate> measured_rate(LoaderOptions options, const RateOptions& how);

}  // namespace foreload
