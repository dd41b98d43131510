#include "options.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <map>

#include "errors.h"

namespace py = pybind11;

namespace foreload::python {
namespace {

template <typename T>
T choose(const char* name, const std::string& word, const std::map<std::string, T>& choices) {
  if (const auto found = choices.find(word); found != choices.end()) return found->second;
  std::string names;
  for (const auto& [choice, unused] : choices) names += (names.empty() ? "'" : ", '") + choice + "'";
  raise({Code::kInvalid, fmt::format("{} should be one of {}, got '{}'", name, names, word)});
}

// Takes options out of the dict by name; what nobody asked for is an error of the package.
class Reader {
 public:
  explicit Reader(const py::dict& given) : rest_(given.attr("copy")()) {}

  template <typename T>
  void read(const char* name, T& value) {
    if (!rest_.contains(name)) return;
    const py::object given = rest_.attr("pop")(name);
    try {
      value = given.cast<T>();
    } catch (const py::cast_error&) {
      raise({Code::kInvalid, fmt::format("{}: {} is not possible", name, py::repr(given).cast<std::string>())});
    }
  }

  template <typename T>
  void read(const char* name, T& value, const std::map<std::string, T>& choices) {
    std::string word;
    read(name, word);
    if (!word.empty()) value = choose(name, word, choices);
  }

  void finish() const {
    for (const auto& [name, unused] : rest_) {
      raise({Code::kInvalid, fmt::format("there is no option '{}'", name.cast<std::string>())});
    }
  }

 private:
  py::dict rest_;
};

const std::map<std::string, LastBatch> kLastBatch{
    {"auto", LastBatch::kAuto}, {"ragged", LastBatch::kRagged}, {"pad", LastBatch::kPad}, {"drop", LastBatch::kDrop}};

void read_words(Reader& reader, LoaderOptions& options) {
  reader.read("dtype", options.dtype, {{"u8", DType::kU8}, {"f16", DType::kF16}, {"f32", DType::kF32}});
  reader.read("layout", options.layout, {{"nchw", Layout::kNchw}, {"nhwc", Layout::kNhwc}});
  reader.read("last_batch", options.last_batch, kLastBatch);
  reader.read("on_error", options.on_error, {{"fail", OnError::kFail}, {"replace", OnError::kReplace}});
  reader.read("decode", options.decode, {{"exact", Decode::kExact}, {"fast", Decode::kFast}});
  reader.read("rewrite", options.rewrite, {{"auto", Rewrite::kAuto}, {"off", Rewrite::kOff}, {"on", Rewrite::kOn}});
  reader.read("eviction", options.eviction,
              {{"static", Eviction::kStatic},
               {"frequency", Eviction::kFrequency},
               {"belady", Eviction::kBelady},
               {"lru", Eviction::kLru}});
}

void read_hosts(Reader& reader, LoaderOptions& options) {
  reader.read("host", options.host);
  reader.read("follow", options.follow);
  reader.read("peers", options.peers);
  reader.read("credentials", options.credentials);
  reader.read("assignment", options.assignment, {{"balanced", Assignment::kBalanced}, {"slice", Assignment::kSlice}});
  reader.read("rates", options.rates);
}

void read_source(Reader& reader, SourceOptions& source) {
  std::vector<SampleId> ids;
  std::vector<std::string> keys;
  reader.read("subset_ids", ids);
  reader.read("subset_keys", keys);
  if (!ids.empty()) source.subset = std::move(ids);
  if (!keys.empty()) source.subset = std::move(keys);
  reader.read("label_field", source.label_field);
  reader.read("index_folder", source.index_folder);
  reader.read("trust_index", source.trust_index);
}

void read_order(Reader& reader, LoaderOptions& options) {
  reader.read("seed", options.seed);
  reader.read("shuffle", options.shuffle);
  reader.read("weights", options.weights);
  reader.read("epoch_samples", options.epoch_samples);
  reader.read("echo", options.echo);
  reader.read("echo_window", options.echo_window);
  reader.read("reshuffle", options.reshuffle);
  reader.read("homes", options.homes);
}

}  // namespace

LoaderOptions read_options(const py::dict& given) {
  LoaderOptions options;
  Reader reader(given);
  std::string chain;
  reader.read("chain", chain);
  if (!chain.empty()) options.chain = value_or_raise(parse_chain(chain));
  read_words(reader, options);
  read_source(reader, options.source);
  reader.read("dataset", options.dataset);
  reader.read("batch", options.batch);
  reader.read("global_batch", options.global_batch);
  read_order(reader, options);
  reader.read("memory", options.memory);
  read_hosts(reader, options);
  reader.read("disk", options.disk);
  reader.read("disk_bytes", options.disk_bytes);
  reader.read("workers", options.workers);
  reader.read("held_batches", options.held_batches);
  reader.read("rank", options.rank);
  reader.read("world", options.world);
  reader.read("local_world", options.local_world);
  reader.read("epochs", options.epochs);
  reader.read("cache", options.cache);
  reader.read("direct_io", options.direct_io);
  reader.read("io", options.io);
  reader.read("storage", options.storage);
  reader.read("record", options.record);
  reader.read("max_replacements", options.limits.replacements);
  reader.finish();
  return options;
}

}  // namespace foreload::python
