// The bucket is one number: when the storage is free again (steady clock, nanoseconds). A request starts when it comes
// or when the storage is free, whichever is later, and occupies it for bytes / rate; its bytes arrive `latency` after
// that. Taking a turn is one compare-and-swap, so readers in any number of processes share the rate.
//
//   file:  0 magic "FLBUCKT1" | 8 free_at | 16 … 63 zero
#include "source/throttle.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"

namespace foreload {

namespace {

constexpr std::size_t kBucketBytes = 64;
constexpr std::array<char, 8> kBucketMagic{'F', 'L', 'B', 'U', 'C', 'K', 'T', '1'};
// The steady clock starts anew at boot; a time that is further ahead than this was left by an earlier one.
constexpr Duration kStale = std::chrono::hours(1);

struct alignas(8) BucketFile {
  std::array<char, 8> magic = kBucketMagic;
  std::int64_t free_at = 0;
  std::array<char, 48> rest{};
};
static_assert(sizeof(BucketFile) == kBucketBytes);

struct Spec {
  Bytes bytes_per_second = 0;  // 0: unlimited
  Duration latency{0};
  std::string bucket;
};

Error bad_spec(std::string_view spec, std::string_view why) {
  return {Code::kInvalid, fmt::format("the storage \"{}\" can not be emulated: {}; write it like "
                                      "100MB/s,5ms,bucket=FILE",
                                      spec, why)};
}

Status parse_part(const std::string& spec, std::string_view part, Spec& parsed) {
  constexpr std::string_view kBucket = "bucket=";
  constexpr std::string_view kPerSecond = "/s";
  if (part.substr(0, kBucket.size()) == kBucket) {
    if (!parsed.bucket.empty()) return bad_spec(spec, "it has two buckets");
    parsed.bucket = part.substr(kBucket.size());
    return parsed.bucket.empty() ? Status(bad_spec(spec, "the bucket has no name")) : Status();
  }
  if (part.size() > kPerSecond.size() && part.substr(part.size() - kPerSecond.size()) == kPerSecond) {
    if (parsed.bytes_per_second != 0) return bad_spec(spec, "it has two rates");
    const auto rate = parse_bytes(part.substr(0, part.size() - kPerSecond.size()));
    if (!rate.ok() || *rate == 0) return bad_spec(spec, fmt::format("\"{}\" is no rate", part));
    parsed.bytes_per_second = *rate;
    return {};
  }
  const auto latency = parse_duration(part);
  if (!latency.ok()) return bad_spec(spec, fmt::format("\"{}\" is neither rate, latency nor bucket", part));
  if (parsed.latency.count() != 0) return bad_spec(spec, "it has two latencies");
  if (*latency > kStale) return bad_spec(spec, "the latency exceeds an hour");
  parsed.latency = *latency;
  return {};
}

Result<Spec> parse_spec(const std::string& spec) {
  Spec parsed;
  std::string_view rest = spec;
  for (;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    FORELOAD_TRY(parse_part(spec, rest.substr(0, comma), parsed));
    if (comma == rest.size()) return parsed;
    rest.remove_prefix(comma + 1);
  }
}

// Made complete under another name, then linked: nobody ever sees a half-made bucket.
Status create_bucket(const std::string& path) {
  std::string temporary = path + ".XXXXXX";
  const Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!file.valid()) return errno_error("cannot create the bucket " + path, errno);
  const BucketFile fresh;
  const bool is_written = write(file.get(), &fresh, sizeof fresh) == static_cast<ssize_t>(sizeof fresh);
  const int write_error = is_written ? 0 : errno;
  const bool is_linked = is_written && (link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int link_error = is_linked ? 0 : errno;
  unlink(temporary.c_str());
  if (is_linked) return {};
  return errno_error("cannot create the bucket " + path, is_written ? link_error : write_error);
}

Error foreign(const std::string& path) {
  return {Code::kInvalid, fmt::format("{} exists and is no bucket: it is left as it is; name another file", path)};
}

Result<Descriptor> open_bucket(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  int fd = open(path.c_str(), kFlags);
  if (fd < 0 && errno == ENOENT) {
    FORELOAD_TRY(create_bucket(path));
    fd = open(path.c_str(), kFlags);
  }
  if (fd < 0) return errno == ELOOP ? foreign(path) : errno_error("cannot open the bucket " + path, errno);
  Descriptor file(fd);
  struct stat status {};
  if (fstat(fd, &status) != 0) return errno_error("cannot examine the bucket " + path, errno);
  if (!S_ISREG(status.st_mode) || status.st_size != kBucketBytes) return foreign(path);
  std::array<char, 8> magic{};
  if (pread(fd, magic.data(), magic.size(), 0) != static_cast<ssize_t>(magic.size()) || magic != kBucketMagic)
    return foreign(path);
  return file;
}

// A bucket file in memory, shared with everyone who maps it.
class BucketMapping {
 public:
  static Result<BucketMapping> map(const std::string& path) {
    FORELOAD_ASSIGN(const Descriptor file, open_bucket(path));
    void* data = mmap(nullptr, kBucketBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (data == MAP_FAILED) return errno_error("cannot map the bucket " + path, errno);
    return BucketMapping(static_cast<BucketFile*>(data));
  }
  BucketMapping(BucketMapping&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
  BucketMapping& operator=(BucketMapping&&) = delete;
  ~BucketMapping() {
    if (file_ == nullptr) return;
    FORELOAD_CHECK(munmap(file_, kBucketBytes) == 0, "a mapping unmaps exactly what it mapped");
  }
  std::int64_t& free_at() const { return file_->free_at; }

 private:
  explicit BucketMapping(BucketFile* file) : file_(file) {}
  BucketFile* file_;
};

}  // namespace

struct Throttle::Bucket {
  Spec spec;
  std::optional<BucketMapping> shared;
  alignas(8) std::int64_t own_free_at = 0;

  std::int64_t& free_at() { return shared ? shared->free_at() : own_free_at; }
  // How long the storage is busy with `bytes`. Capped: a turn that long is as good as never.
  std::int64_t busy_ns(Bytes bytes) const {
    if (spec.bytes_per_second == 0) return 0;
    const double ns = static_cast<double>(bytes) * 1e9 / static_cast<double>(spec.bytes_per_second);
    return static_cast<std::int64_t>(std::min(ns, static_cast<double>(kStale.count())));
  }
};

Result<Throttle> Throttle::open(const std::string& spec) {
  auto bucket = std::make_unique<Bucket>();
  FORELOAD_ASSIGN(bucket->spec, parse_spec(spec));
  if (!bucket->spec.bucket.empty()) {
    FORELOAD_ASSIGN(BucketMapping shared, BucketMapping::map(bucket->spec.bucket));
    bucket->shared.emplace(std::move(shared));
  }
  return Throttle(std::move(bucket));
}

Throttle::Throttle(std::unique_ptr<Bucket> bucket) : bucket_(std::move(bucket)) {}
Throttle::Throttle(Throttle&&) noexcept = default;
Throttle& Throttle::operator=(Throttle&&) noexcept = default;
Throttle::~Throttle() = default;

Time Throttle::reserve(Time now, Bytes bytes) {
  const std::atomic_ref<std::int64_t> free_at(bucket_->free_at());
  const std::int64_t busy = bucket_->busy_ns(bytes);
  std::int64_t known = free_at.load(std::memory_order_relaxed);
  std::int64_t next = 0;
  do {
    const bool is_stale = known > now.count() + kStale.count();
    next = (is_stale ? now.count() : std::max(known, now.count())) + busy;
  } while (!free_at.compare_exchange_weak(known, next, std::memory_order_relaxed));
  return Time(next) + bucket_->spec.latency;
}

}  // namespace foreload
