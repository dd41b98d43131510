// ExtentReader: bytes of samples by single blocking reads, from files and from objects: for what looks at samples
// outside of a run. One thread; several may share a client.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "store/http_client.h"

namespace foreload {

class ExtentReader {
 public:
  // `client` must outlive this.
  explicit ExtentReader(HttpClient& client) : client_(client) {}

  // Fills `into` with the first bytes of the extent and returns the stamp that was found. If that is not the extent's
  // own, the file is another one and the bytes mean nothing. Objects are asked for again by the client, files are not.
  // REQUIRES: into.size() ≤ extent.length.
  Result<FileStamp> read(const Extent& extent, std::span<std::byte> into);
  void close() { shard_.reset(); }  // the next read opens its file anew

 private:
  Result<FileStamp> read_object(const Extent& extent, std::span<std::byte> into);
  Status open(const Extent& extent);

  HttpClient& client_;
  Descriptor file_;
  std::optional<std::uint64_t> shard_;  // of which file_ is open
};

}  // namespace foreload
