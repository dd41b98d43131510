// Loader: opens a dataset and hands out its batches, epoch after epoch, in an order that depends on
// the seed alone.
//
//   auto loader = foreload::Loader::open({.dataset = {"imagenet/train"}, .batch = 256, .seed = 7,
//                                         .chain = {random_resized_crop(224), random_flip(), normalize(kImageNet)},
//                                         .memory = 8_GiB});
//   for (;;) {
//     auto batch = loader->next();            // Result<std::optional<Batch>>
//     if (!batch) return fail(batch.error());
//     if (!*batch) break;                     // the epoch's end; the next call starts the next epoch
//     train((*batch)->as<float>(), (*batch)->labels());
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foreload/batch.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "foreload/transform.h"
#include "foreload/types.h"

namespace foreload {

// What becomes of the last, incomplete global batch of an epoch.
enum class LastBatch {
  kAuto,    // as torch: ragged for one rank, pad for several
  kRagged,  // shorter; with fewer samples than ranks some ranks get an empty batch
  kPad,     // as DistributedSampler: the epoch's first samples again, until all ranks have equally many
  kDrop,
};

enum class OnError {
  kFail,     // a bad sample ends the run with an error that names it
  kReplace,  // a bad sample is replaced by another one and listed
};

// Whether a cached JPEG is coded again, without loss, so that later epochs decode only their crop of it.
enum class Rewrite {
  kAuto,  // by workers that have nothing else to do, when enough epochs lie ahead
  kOff,
  kOn,  // at once, when a sample was prepared and nobody else is about to use it
};

// Which samples are kept in memory when it does not hold all of them. What is delivered does not depend on it.
enum class Eviction {
  kStatic,     // chosen by the seed, never evicted: the best for one learner whose epochs have every sample once
  kFrequency,  // those that this learner uses most often in the run; never evicted
  kBelady,     // the one whose next use is furthest away goes, or is not admitted
  kLru,        // the one that was not used for the longest time goes
};

enum class Decode {
  kExact,  // every pixel as Pillow's
  kFast,   // a JPEG crop that is at least twice its target is decoded at a fraction of its size
};

struct Limits {
  Bytes sample_bytes = 1_GiB;           // longer samples are bad samples
  std::uint64_t pixels = 256ull << 20;  // width × height
  std::uint32_t scans = 500;            // of a progressive JPEG
  std::uint64_t replacements = 1000;    // per learner; one more fails the run
};

// Who takes which samples of a global batch when there are several hosts. The global batch is the same.
enum class Assignment {
  kBalanced,  // whoever's host has them: equal counts, hardly any traffic
  kSlice,     // ranks take consecutive positions in their order, as with one host
};

struct LoaderOptions {
  std::vector<std::string> dataset{};  // see SourceOptions::datasets
  std::uint64_t batch = 1;             // samples per learner, as in torch
  std::uint64_t global_batch = 0;      // 0: batch × world; fixed when the world may change between runs
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::vector<double> weights{};    // per sample: an epoch is draws with replacement; empty: every sample once
  std::uint64_t epoch_samples = 0;  // draws per epoch, with weights; 0: as many as samples
  std::uint64_t echo = 1;           // how often each sample comes in an epoch, every time augmented anew
  std::uint64_t echo_window = 0;    // so many samples are repeated together; 0: a global batch
  double reshuffle = 1;             // share of the samples that an epoch deals to any home; the others stay in theirs
  std::uint64_t homes = 0;          // slices of a global batch that keep their samples, with reshuffle; 0: one per rank
  LastBatch last_batch = LastBatch::kAuto;
  std::vector<Transform> chain{};  // empty: images as RandomResizedCrop(224) + flip + normalise; arrays as they are
  DType dtype = DType::kF32;       // of images: u8, f16 or f32
  Layout layout = Layout::kNchw;
  Bytes memory = 0;      // for cache, batches, reads and scratch together; 0: half of what is free
  std::string disk{};    // folder on a local disk that keeps samples between epochs and runs; empty: none. Every
                         // rank has a cache of its own in it
  Bytes disk_bytes = 0;  // of it at most; 0: what the dataset needs, if 90 % of the free space are enough
  std::optional<unsigned> workers{};  // prep threads; nothing: as many as the process may run on. 0: none, others of
                                      // the host prepare (foreload agent), or these begin when nobody does
  unsigned held_batches = 2;          // how many batches the caller may hold at once
  std::string host{};   // processes of this machine that give the same name share cache and prep; `memory` is for
                        // all of them together. Empty: this process alone
  bool follow = false;  // with a host: begin where another job with the same batches begins its next epoch, and read
                        // them together with it, unless it is still at this one's first batch
  // Hosts of one job, each with an agent (foreload agent), which keep every sample once and give each other what they
  // have: "host:port,host:port,…" in the order of ranks, or "auto": as torchrun or Slurm say; "mpi": mpirun
  // started them. Otherwise the first member starts an agent where there is none. Needs `host`. Empty: other hosts are
  // not asked
  std::string peers{};
  std::string credentials{};  // folder of `foreload agent --make-credentials`, for an agent that is started here
  Assignment assignment = Assignment::kBalanced;  // with peers: who gets which samples of a global batch
  std::vector<std::uint32_t> rates{};  // with peers: samples of each rank per step, as weights; empty: equally many
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t local_world = 0;  // of them on this machine, where they divide memory; 0: all
  Epoch epochs = 0;               // how many will be read; 0: not known. Nothing is fetched beyond them
  OnError on_error = OnError::kFail;
  Limits limits{};
  SourceOptions source{};  // subset, index folder, …; its `datasets` is ignored in favour of `dataset`
  Decode decode = Decode::kExact;
  Rewrite rewrite = Rewrite::kAuto;
  Eviction eviction = Eviction::kStatic;
  bool cache = true;       // false: keep nothing between epochs
  bool direct_io = false;  // read past the page cache: for storage that other jobs' files should not lose
  std::string io{};        // "", "uring" or "threads": which engine reads; empty: the best that works here
  std::string storage{};   // emulated slow storage, "100MB/s,5ms,bucket=FILE"; empty: none. For tests
  std::string record{};    // file that receives the event record; empty: none
  std::function<void(const std::string&)> warn{};  // one line per cause; never called after close
  std::function<bool()> stop{};                    // asked while open() waits for other hosts: true gives up
};

// Everything that resume needs. `position` counts what the whole job has consumed of the epoch.
struct State {
  std::uint32_t version = 1;
  std::uint64_t fingerprint = 0;
  std::uint64_t seed = 0;
  Epoch epoch = 0;
  Position position = 0;
  std::uint64_t plan = 0;  // hash of (shuffle, last-batch rule, sampling, global batch)

  bool operator==(const State&) const = default;
};

std::string state_to_json(const State& state);
// Untrusted input: bounded, every field checked.
Result<State> state_from_json(const std::string& text);

struct Quarantined {
  Epoch epoch = 0;
  Position position = 0;
  SampleId id = 0;
  std::string key{};
  std::string reason{};
};

// Of one epoch, complete or running.
struct EpochStats {
  Epoch epoch = 0;
  std::uint64_t samples = 0;       // that next() handed out to this rank, with padding and replacements
  std::uint64_t batches = 0;       // in which they were
  std::vector<SampleId> padded{};  // delivered again to fill the last batch: what stands behind the epoch's positions
  // Bad samples in whose place another one came.
  std::uint64_t replaced = 0;
  std::uint64_t damaged = 0;  // decoded all the same, as Pillow would
  Duration wall{};            // from the first next() of the epoch to its end
  Duration fetch_stall{};     // next() waited for bytes
  Duration prep_stall{};      // next() waited for decode and augment
  Duration prep_busy{};       // worker time spent preparing, over all threads
  // Sample bytes by the tier they came from: their sum is what was delivered and what filled a home ahead of its use.
  Bytes memory_bytes = 0;
  Bytes disk_bytes = 0;
  Bytes peer_bytes = 0;  // other hosts' memory
  Bytes source_bytes = 0;
  std::uint64_t shared_batches = 0;  // of batches: prepared by another job of the host, for both
  Bytes filled_bytes = 0;  // of disk_bytes and source_bytes: read ahead of need while this epoch ran; later from memory
};

// Of the stores that hold objects of the dataset.
struct ObjectStats {
  std::uint64_t requests = 0;   // all that were sent
  std::uint64_t retries = 0;    // of them: because the one before failed
  std::uint64_t hedges = 0;     // of them: because the one before was slow
  std::uint64_t throttled = 0;  // answers that asked for fewer
  Bytes bytes = 0;              // received, also those that nobody needed
};

struct LoaderStats {
  std::vector<EpochStats> epochs{};           // the last 1,024 and the running one
  std::vector<Quarantined> quarantine{};      // every place where a bad sample was replaced
  Bytes memory_budget = 0;                    // for cache, batches, reads and scratch together
  Bytes cache_capacity = 0;                   // what is kept at most
  Bytes cached_bytes = 0;                     // what is kept by now
  Bytes disk_capacity = 0;                    // what the disk tier may keep; 0: there is none
  Bytes disk_used = 0;                        // what it keeps by now
  std::uint64_t disk_damaged = 0;             // samples that it had to drop; those of files changed since do not count
  std::optional<std::string> disk_failure{};  // why it takes no more samples
  bool filled = false;                        // nothing more is to be read ahead for the next epoch
  std::optional<Error> read_error{};          // of the first read that failed for good
  std::uint64_t rewritten = 0;                // of the cached samples: made crop-addressable
  ObjectStats objects{};
  std::uint32_t hosts = 1;  // of the job: machines that share their caches
  unsigned ring_slots = 0;  // batches that may be open, ready or held at once
  unsigned threads = 0;     // of this process that prepare
  std::string io{};         // which engine reads files, also the disk tier's: "uring" or "threads"
};

class Loader {
 public:
  // Opens the dataset, checks every option and starts the threads. Nothing is left behind on error.
  static Result<Loader> open(LoaderOptions options);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();  // stops all threads and waits for them; batches on lease stay valid

  // The next batch of the running epoch, or nothing at its end; the call after that begins the
  // next epoch. Blocks until the batch is ready. One thread at a time.
  Result<std::optional<Batch>> next();

  // Makes a waiting next(), or else the following one, return kCancelled; the call after that goes on. Any thread, also
  // a signal handler.
  void interrupt();

  State position() const;           // after the last batch that next() handed out
  Status seek(const State& state);  // O(1); drops what was prepared ahead
  Status seek_epoch(Epoch epoch);   // to its beginning

  std::uint64_t batches_per_epoch() const;
  // Which positions this rank gets in global batch `step`, in rising order.
  std::vector<Position> positions(Epoch epoch, std::uint64_t step) const;
  const Source& source() const;
  const TensorSpec& sample_spec() const;
  std::span<const std::byte> batch_memory() const;  // where all batches lie: to be registered with a device once
  LoaderStats stats() const;                        // any thread

 private:
  friend Result<Loader> open_with_seams(LoaderOptions options, const struct Seams& seams);
  class Parts;
  explicit Loader(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace foreload
