#include "record/sample_reader.h"

#include <fmt/core.h>

#include <thread>

#include "base/jitter.h"
#include "base/text.h"
#include "policy/retrying.h"
#include "source/describe.h"

namespace foreload {

Status SampleReader::read_once(SampleId id, const Extent& extent, std::vector<std::byte>& bytes) {
  FORELOAD_ASSIGN(const FileStamp found, reader_.read(extent, bytes));
  if (found != extent.stamp) return data_changed(source_, id, found);
  return {};
}

Result<std::vector<std::byte>> SampleReader::read(SampleId id) {
  const Extent extent = source_.locate(id);
  std::vector<std::byte> bytes(extent.length);
  const std::uint64_t key = jitter_key();
  for (unsigned attempt = 1;; ++attempt) {
    Status status = read_once(id, extent, bytes);
    if (status.ok()) return bytes;
    reader_.close();
    const Error& error = status.error();
    if (error.code == Code::kDataChanged) return error;
    if (error.code == Code::kNotFound) {
      return Error{Code::kDataChanged,
                   fmt::format("{}: the {} is gone since it was indexed", describe_sample(source_, id),
                               extent.store != nullptr ? "object" : "file")};
    }
    // The client has asked for an object several times already.
    const auto pause = extent.store == nullptr ? pause_after(kFileRetry, attempt, {}, key) : std::nullopt;
    if (error.code != Code::kIo || !pause) {
      return Error{error.code, fmt::format("{}: can not be read after {}: {}", describe_sample(source_, id),
                                           counted(attempt, "attempt"), error.message)};
    }
    const Error stopped{Code::kCancelled, "stopped"};
    if (stop_()) return stopped;
    std::this_thread::sleep_for(*pause);
    if (stop_()) return stopped;
  }
}

}  // namespace foreload
