#include "probe/dimension_scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "prep/chain.h"
#include "source/describe.h"
#include "source/extent_reader.h"
#include "source/warnings.h"
#include "store/http_client.h"

namespace foreload {

namespace {

// Nearly all headers end before; a file with a large preview or colour profile is read as a whole.
constexpr Bytes kHeaderBytes = 32_KiB;
constexpr unsigned kRemoteThreads = 16;  // they wait for answers most of the time; as many connections are kept

class Scanner {
 public:
  Scanner(const Source& source, const DimensionScanOptions& options) : source_(source), options_(options) {
    found_.dimensions.resize(source.size());
  }

  Result<DimensionScan> run() {
    const bool is_remote = source_.size() > 0 && source_.locate(0).store != nullptr;
    const unsigned threads = is_remote ? std::max(options_.threads, kRemoteThreads) : options_.threads;
    parallel_for(threads, source_.size(), [this](std::uint64_t id) { visit(id); });
    const MutexLock lock(mutex_);
    if (error_) return *error_;
    return std::move(found_);
  }

 private:
  void visit(SampleId id) {
    if (failed_) return;
    if (options_.stop && options_.stop()) return fail({Code::kCancelled, "stopped; nothing was stored"});
    if (const std::optional<Dimensions> known = source_.dimensions(id)) {
      found_.dimensions[id] = *known;
    } else if (Status status = look(id); !status) {
      return fail(std::move(status).error());
    }
    const std::uint64_t done = done_.fetch_add(1) + 1;
    if (options_.progress) options_.progress(done);
  }

  static Status fill(ExtentReader& reader, const Extent& extent, std::span<std::byte> into) {
    const auto found = reader.read(extent, into);
    if (found && *found == extent.stamp) return {};
    if (found) {
      return Error{Code::kDataChanged,
                   printable(extent.display) + " has changed since it was indexed: index it again (--rebuild)"};
    }
    return Error{found.error().code, fmt::format("{}: {}", printable(extent.display), found.error().message)};
  }

  Status look(SampleId id) {
    const Extent extent = source_.locate(id);
    ExtentReader reader(client_);
    std::vector<std::byte> bytes(std::min(kHeaderBytes, extent.length));
    FORELOAD_TRY(fill(reader, extent, bytes));
    Result<Dimensions> dimensions = image_dimensions(bytes);
    if (!dimensions && bytes.size() < extent.length) {
      bytes.resize(extent.length);
      FORELOAD_TRY(fill(reader, extent, bytes));
      dimensions = image_dimensions(bytes);
    }
    if (dimensions) {
      found_.dimensions[id] = *dimensions;
    } else {
      count_unknown(id, dimensions.error());
    }
    return {};
  }

  void count_unknown(SampleId id, const Error& why) {
    const MutexLock lock(mutex_);
    // The lowest id is the example, whichever thread comes first.
    if (found_.unknown++ == 0 || id < example_id_) {
      example_id_ = id;
      found_.example = fmt::format("{}: {}", describe_sample(source_, id), why.message);
    }
  }

  void fail(Error error) {
    failed_ = true;
    const MutexLock lock(mutex_);
    if (!error_) error_ = std::move(error);
  }

  const Source& source_;
  const DimensionScanOptions& options_;
  HttpClient client_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> failed_{false};
  DimensionScan found_;  // dimensions: each thread writes its own samples; the rest under mutex_
  Mutex mutex_;
  SampleId example_id_ FORELOAD_GUARDED_BY(mutex_) = 0;
  std::optional<Error> error_ FORELOAD_GUARDED_BY(mutex_);
};

}  // namespace

Result<DimensionScan> scan_dimensions(const Source& source, const DimensionScanOptions& options) {
  return Scanner(source, options).run();
}

}  // namespace foreload
