#include "probe/specimen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/write_file.h"
#include "foreload/schedule.h"
#include "loader/setup.h"
#include "probe/read_stream.h"
#include "probe/storage_set.h"

namespace foreload {
namespace {

constexpr unsigned kDepth = 16;
constexpr double kTime = 0.15;
constexpr double kBytes = 0.25;  // where samples are so long that a few are more than kMostBytes
constexpr std::uint64_t kFewSamples = 4;
constexpr std::uint64_t kBatch = 16;
constexpr std::size_t kLongestExtension = 8;
constexpr Epoch kEpoch = Epoch{1} << 40;  // of the keyed order: none that storage is measured with

// Only what tells the format: keys are other people's words.
std::string extension_of(const std::string& key) {
  const std::string found = std::filesystem::path(key).extension().string();
  const bool is_plain = std::all_of(found.begin(), found.end(), [](char c) {
    return c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  return found.size() > 1 && found.size() <= kLongestExtension && is_plain ? found : ".bin";
}

constexpr std::time_t kSettled = 60;  // seconds after which a fresh mark is locked, if anybody is going to

// Whether this is a folder that we made, for a process that is gone: it is ours, has the mark, and nobody holds it.
bool is_left_behind(const std::filesystem::path& folder) {
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()) return false;
  const Descriptor mark(
      ::open((folder / TemporaryFolder::kMark).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!mark.valid() || ::fstat(mark.get(), &found) != 0) return false;
  const bool is_ours = S_ISREG(found.st_mode) && found.st_uid == ::geteuid() && found.st_size == 0;
  return is_ours && std::time(nullptr) - found.st_mtime >= kSettled && ::flock(mark.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_left_behind(const std::string& place) {
  std::error_code failed;
  std::filesystem::directory_iterator entries(place, failed);
  std::vector<std::filesystem::path> left;
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with(std::string(TemporaryFolder::kName) + "-") && is_left_behind(entries->path()))
      left.push_back(entries->path());
  }
  std::error_code ignored;
  for (const std::filesystem::path& folder : left) std::filesystem::remove_all(folder, ignored);
}

// Ids of the specimen, the most that it may have.
std::vector<SampleId> choose(const Source& source, const LoaderOptions& options, const Allowance& allowance) {
  const Bytes most = std::max<Bytes>(allowance.bytes(kBytes), 1);
  const Bytes mean = std::max<Bytes>(source.total_bytes() / std::max<std::uint64_t>(source.size(), 1), 1);
  const Bytes usual = std::min(most, Specimen::kMostBytes);
  const std::uint64_t count =
      std::clamp<std::uint64_t>(usual / mean, std::min(kFewSamples, most / mean + 1), Specimen::kMostSamples);
  std::vector<SampleId> ids = representative_samples(source, options.seed, count);
  Bytes bytes = 0;
  std::erase_if(ids, [&](SampleId id) {
    const Bytes length = source.length(id);
    const bool is_too_much = length > options.limits.sample_bytes || bytes + length > most;
    if (!is_too_much) bytes += length;
    return is_too_much;
  });
  return ids;
}

}  // namespace

Result<std::unique_ptr<Source>> open_dataset(const LoaderOptions& options) {
  SourceOptions from = options.source;
  from.datasets = options.dataset;
  if (!from.warn) from.warn = options.warn;
  return open_source(from);
}

std::vector<SampleId> representative_samples(const Source& source, std::uint64_t seed, std::uint64_t count) {
  constexpr std::uint64_t kMostLooks = 65'536;
  const Schedule order({.samples = source.size(), .seed = seed});
  std::vector<SampleId> ids(std::min(source.size(), kMostLooks));
  order.samples_at(kEpoch, 0, ids);
  std::erase_if(ids, [&](SampleId id) { return source.length(id) == 0; });
  std::sort(ids.begin(), ids.end(),
            [&](SampleId a, SampleId b) { return std::pair(source.length(a), a) < std::pair(source.length(b), b); });
  if (ids.size() <= count) return ids;
  std::vector<SampleId> chosen(count);
  for (std::uint64_t i = 0; i < count; ++i) chosen[i] = ids[(2 * i + 1) * ids.size() / (2 * count)];
  return chosen;
}

Result<TemporaryFolder> TemporaryFolder::make(const std::string& parent) {
  std::string place = parent;
  if (place.empty()) {
    const char* const named = std::getenv("TMPDIR");
    place = named != nullptr && *named != '\0' ? named : "/tmp";
  }
  remove_left_behind(place);
  FORELOAD_ASSIGN(std::string path, make_fresh_folder(place, kName));
  TemporaryFolder folder(std::move(path));
  FORELOAD_TRY(folder.mark());
  return folder;
}

Status TemporaryFolder::mark() {
  const std::string path = path_ + "/" + kMark;
  mark_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!mark_.valid()) return errno_error("cannot make " + path, errno);
  (void)::flock(mark_.get(), LOCK_EX | LOCK_NB);  // on a file system without locks, nothing is ever removed later
  return {};
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Status Specimen::write(std::size_t number, const std::string& key, std::span<const std::byte> bytes) {
  const std::string path = fmt::format("{}/{:06}{}", raw(), number, extension_of(key));
  FORELOAD_ASSIGN(const Descriptor file, create_output(path));
  FORELOAD_TRY(write_all(file.get(), bytes, path));
  ++size_;
  bytes_ += bytes.size();
  return {};
}

Result<Specimen> Specimen::take(const Source& source, const LoaderOptions& options, Allowance& allowance) {
  FORELOAD_ASSIGN(const ChainOptions chain, choose_chain(options, source));
  FORELOAD_ASSIGN(TemporaryFolder folder, TemporaryFolder::make(allowance.how().scratch));
  Specimen specimen(std::move(folder), chain.transforms);
  std::error_code failed;
  std::filesystem::create_directory(specimen.raw(), failed);
  if (failed) return errno_error("cannot make " + specimen.raw(), failed.value());
  FORELOAD_ASSIGN(const auto stream, ReadStream::open(source, {.io = options.io, .depth = kDepth}));
  const std::vector<SampleId> ids = choose(source, options, allowance);
  const Schedule shuffled(
      {.samples = ids.size(), .seed = options.seed});  // so that those that come in time are as good
  const auto order = [&, at = Position{0}]() mutable {
    return at < ids.size() ? std::optional(ids[shuffled.sample_at(0, at++)]) : std::nullopt;
  };
  FORELOAD_TRY(stream->begin(order, stream->max_depth(), allowance));
  const auto keep = [&](SampleId id, std::span<const std::byte> bytes) {
    const auto number = std::find(ids.begin(), ids.end(), id) - ids.begin();
    return specimen.write(static_cast<std::size_t>(number), source.key(id), bytes);
  };
  FORELOAD_TRY(stream->read_all(keep, allowance.deadline(kTime), allowance));
  if (specimen.size() > 0) return specimen;
  return Error{Code::kInvalid, fmt::format("no sample of {} could be taken in the time and bytes of the analysis: all "
                                           "are empty, too long, or come too slowly",
                                           source.uri())};
}

Result<ConvertReport> Specimen::convert(const std::string& name, bool keep_original, const Allowance& allowance) const {
  ConvertOptions options;
  options.source.datasets = {raw()};
  options.destination = folder() + "/" + name;
  options.keep_original = keep_original;
  options.on_bad = OnBadSample::kKeep;
  options.stop = allowance.how().stop;
  return convert_dataset(options);
}

LoaderOptions Specimen::options(const LoaderOptions& of, const std::string& dataset) const {
  LoaderOptions options;
  options.dataset = {dataset};
  options.batch = std::min(kBatch, std::max<std::uint64_t>(size_ / 4 * 2, 2));
  options.seed = of.seed;
  options.last_batch = LastBatch::kRagged;
  options.chain = chain_;
  options.dtype = of.dtype;
  options.layout = of.layout;
  options.decode = of.decode;
  options.limits = of.limits;
  options.limits.replacements = ~std::uint64_t{0};
  options.io = of.io;
  options.on_error = OnError::kReplace;
  options.rewrite = Rewrite::kOff;
  return options;
}

}  // namespace foreload
