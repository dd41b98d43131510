#include "loader_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "command.h"
#include "number_flag.h"
#include "order_flags.h"
#include "subset.h"
#include "token_flags.h"

namespace foreload {
namespace {

constexpr std::uint64_t kDefaultBatch = 64;

template <typename T>
Result<T> choose(const std::string& flag, const std::string& text, const std::map<std::string, T>& choices) {
  if (const auto found = choices.find(text); found != choices.end()) return found->second;
  std::string names;
  for (const auto& [name, unused] : choices) names += (names.empty() ? "" : ", ") + name;
  return Error{Code::kInvalid, fmt::format("{} \"{}\" is unknown: choose one of {}", flag, text, names)};
}

// Which one of the job's this is.
void declare_learner(CLI::App& command, LoaderOptions& o) {
  add_number(command, "--world", o.world, "Number of learners");
  add_number(command, "--rank", o.rank, "Which of them this is");
  add_number(command, "--local-world", o.local_world, "How many of them are on this machine; 0: all");
}

}  // namespace

struct LoaderFlags::Texts {
  std::string memory;
  std::string disk_size;
  std::string chain;
  std::string dtype = "f32";
  std::string layout = "nchw";
  std::string last = "auto";
  std::string on_error = "fail";
  std::string decode = "exact";
  std::string rewrite = "auto";
  std::string eviction = "static";
  std::string transport = "grpc";
  std::string assignment = "balanced";
  std::string subset;
  TokenFlags tokens;
  OrderFlags order;
  bool in_order = false;
  bool no_cache = false;
};

namespace {

void declare_host(CLI::App& command, LoaderOptions& o) {
  command.add_option("--host", o.host, "Share cache and prep with all who give this name; --memory is for all of them")
      ->check(refuse_empty);
  command.add_flag("--follow", o.follow,
                   "With --host: begin with the next epoch of a job that has the same batches, and share them with it");
}

void declare_reading(CLI::App& command, LoaderOptions& o) {
  command.add_option("--io", o.io, "How files are read: uring or threads; default: the best that works here");
  command.add_flag("--direct", o.direct_io, "Read past the page cache (O_DIRECT)");
  command.add_option("--storage", o.storage, "Emulate slow storage: \"100MB/s,5ms,bucket=FILE\"");
}

void declare_peers(CLI::App& command, LoaderOptions& o, std::string& transport, std::string& assignment) {
  command
      .add_option(
          "--peers", o.peers,
          "Other machines of the job, HOST[:PORT],… with this one, in the order of ranks: together they keep every "
          "sample once; auto: as torchrun or Slurm say")
      ->check(refuse_empty);
  command
      .add_option(
          "--transport", transport,
          "Between machines: grpc, for --peers; or mpi, whose agents mpirun has started (foreload agent --transport "
          "mpi)")
      ->check(CLI::IsMember({"grpc", "mpi"}))
      ->capture_default_str();
  command
      .add_option("--credentials", o.credentials,
                  "Folder of `foreload agent --make-credentials`, for the agent that is started where there is none")
      ->check(refuse_empty);
  command
      .add_option("--assignment", assignment,
                  "With --peers: balanced (ranks take what their machine keeps) or slice (consecutive, by rank)")
      ->capture_default_str();
  command.add_option("--rates", o.rates, "With --peers: samples of each rank per step, as weights (2,2,1)")
      ->delimiter(',');
}

// Ranks are dealt evenly to machines unless somebody says otherwise.
Status complete_peers(const std::string& transport, LoaderOptions& options) {
  if (transport == "mpi") {
    if (!options.peers.empty() || !options.credentials.empty()) {
      return Error{Code::kInvalid,
                   fmt::format("{} is for --transport grpc: over MPI the peers are the agents that mpirun started; "
                               "leave it out",
                               options.peers.empty() ? "--credentials" : "--peers")};
    }
    options.peers = transport;
  }
  if (options.peers.empty()) return {};
  if (options.host.empty()) options.host = "peers";
  if (options.local_world != 0 || options.peers == "auto" || options.peers == "mpi") return {};
  const auto hosts = static_cast<std::uint32_t>(std::ranges::count(options.peers, ',') + 1);
  if (options.world % hosts != 0) {
    return Error{Code::kInvalid,
                 fmt::format("{} ranks are not dealt evenly to {} machines: say how many are on this one "
                             "(--local-world)",
                             options.world, hosts)};
  }
  options.local_world = options.world / hosts;
  return {};
}

}  // namespace

LoaderFlags::LoaderFlags(CLI::App& command)
    : options_(std::make_shared<LoaderOptions>(LoaderOptions{.batch = kDefaultBatch})),
      texts_(std::make_shared<Texts>()) {
  LoaderOptions& o = *options_;
  Texts& t = *texts_;
  command
      .add_option("URI", o.dataset,
                  "Folder, tar file, list of tars (train-{000..009}.tar), or URL; several are concatenated")
      ->required();
  add_number(command, "--batch", o.batch, "Samples per batch and learner");
  add_number(command, "--global-batch", o.global_batch,
             "Samples per step over all ranks, when the world may change; 0: batch × world");
  add_number(command, "--seed", o.seed, "Fixes order and augmentation");
  command.add_option("--memory", t.memory,
                     "Budget for cache, batches, reads and scratch (8GiB); default: half of what is free");
  command
      .add_option("--disk", o.disk, "Folder on a local disk that keeps samples between epochs and runs; default: none")
      ->check(refuse_empty);
  declare_host(command, o);
  declare_peers(command, o, t.transport, t.assignment);
  command.add_option("--disk-size", t.disk_size, "Of it at most (200GB); default: what the dataset needs");
  add_number(command, "--workers", o.workers,
             "Prep threads; default: one per usable core. 0, with --host: others prepare (foreload agent)");
  command.add_option("--chain", t.chain,
                     "Transforms, \"resize(256), center_crop(224), normalize\"; default: chosen by the data");
  command.add_option("--dtype", t.dtype, "Of prepared images: u8, f16, f32")->capture_default_str();
  command.add_option("--layout", t.layout, "Of prepared images: nchw, nhwc")->capture_default_str();
  declare_learner(command, o);
  command.add_option("--last", t.last, "The last, incomplete batch: auto (as torch), ragged, pad, drop")
      ->capture_default_str();
  command.add_option("--on-error", t.on_error, "A bad sample: fail or replace")->capture_default_str();
  command
      .add_option("--decode", t.decode,
                  "exact: as Pillow; fast: JPEG crops of at least twice their target at a fraction of their size")
      ->capture_default_str();
  command
      .add_option("--rewrite", t.rewrite,
                  "Make cached JPEGs crop-addressable, without loss: auto (in spare time, for long runs), off, on")
      ->capture_default_str();
  command
      .add_option("--eviction", t.eviction,
                  "What memory keeps when it does not hold all: static, frequency (own most used), belady (soonest "
                  "used again), lru")
      ->capture_default_str();
  command.add_option("--subset", t.subset,
                     "Ids or keys, separated by commas, or @FILE with one per line: take only these");
  t.tokens.declare(command);
  t.order.declare(command, o);
  command.add_option("--label-field", o.source.label_field, "Field of key.json that holds the label")
      ->capture_default_str();
  command.add_option("--index-folder", o.source.index_folder, "Where the index is kept; default: beside the dataset");
  command.add_flag("--trust-index", o.source.trust_index,
                   "Use an index that is there without asking whether the dataset has changed");
  declare_reading(command, o);
  command.add_option("--record", o.record, "Write the event record to this file");
  command.add_flag("--in-order", t.in_order,
                   "Do not shuffle (the command shuffles by default, Python does not, as torch)");
  command.add_flag("--no-cache", t.no_cache, "Keep nothing in memory between epochs");
}

Result<LoaderOptions> LoaderFlags::options() const {
  LoaderOptions options = *options_;
  const Texts& texts = *texts_;
  if (!texts.memory.empty()) {
    FORELOAD_ASSIGN(options.memory, parse_bytes(texts.memory));
    if (options.memory == 0)
      return Error{Code::kInvalid, "--memory 0 leaves room for nothing: give a size such as 8GiB"};
  }
  if (!texts.disk_size.empty()) {
    FORELOAD_ASSIGN(options.disk_bytes, parse_bytes(texts.disk_size));
    if (options.disk_bytes == 0)
      return Error{Code::kInvalid, "--disk-size 0 leaves room for nothing: give a size such as 200GB"};
  }
  if (!texts.chain.empty()) {
    FORELOAD_ASSIGN(options.chain, parse_chain(texts.chain));
  }
  FORELOAD_ASSIGN(options.dtype, choose<DType>("--dtype", texts.dtype,
                                               {{"u8", DType::kU8}, {"f16", DType::kF16}, {"f32", DType::kF32}}));
  FORELOAD_ASSIGN(options.layout,
                  choose<Layout>("--layout", texts.layout, {{"nchw", Layout::kNchw}, {"nhwc", Layout::kNhwc}}));
  FORELOAD_ASSIGN(options.last_batch, choose<LastBatch>("--last", texts.last,
                                                        {{"auto", LastBatch::kAuto},
                                                         {"ragged", LastBatch::kRagged},
                                                         {"pad", LastBatch::kPad},
                                                         {"drop", LastBatch::kDrop}}));
  FORELOAD_ASSIGN(options.decode,
                  choose<Decode>("--decode", texts.decode, {{"exact", Decode::kExact}, {"fast", Decode::kFast}}));
  FORELOAD_ASSIGN(options.rewrite,
                  choose<Rewrite>("--rewrite", texts.rewrite,
                                  {{"auto", Rewrite::kAuto}, {"off", Rewrite::kOff}, {"on", Rewrite::kOn}}));
  FORELOAD_ASSIGN(options.eviction, choose<Eviction>("--eviction", texts.eviction,
                                                     {{"static", Eviction::kStatic},
                                                      {"frequency", Eviction::kFrequency},
                                                      {"belady", Eviction::kBelady},
                                                      {"lru", Eviction::kLru}}));
  FORELOAD_ASSIGN(options.assignment,
                  choose<Assignment>("--assignment", texts.assignment,
                                     {{"balanced", Assignment::kBalanced}, {"slice", Assignment::kSlice}}));
  FORELOAD_TRY(complete_peers(texts.transport, options));
  FORELOAD_ASSIGN(options.on_error, choose<OnError>("--on-error", texts.on_error,
                                                    {{"fail", OnError::kFail}, {"replace", OnError::kReplace}}));
  FORELOAD_ASSIGN(options.source.subset, parse_subset(texts.subset));
  FORELOAD_TRY(texts.tokens.apply(options.source));
  FORELOAD_TRY(texts.order.apply(options));
  options.shuffle = !texts.in_order;
  options.cache = !texts.no_cache;
  return options;
}

}  // namespace foreload
