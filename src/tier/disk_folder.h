// DiskFolder: the subfolder of a disk cache, found or made, and locked. It is ours if its file "lock" begins with our
// marker; nothing is ever written to, truncated or removed in a folder that is not. Held by one process at a time.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class DiskFolder {
 public:
  // "foreload-cache-v1-<fingerprint>" or "…-rank<rank>": other datasets, versions and ranks have folders of their own.
  static std::string name_for(std::uint64_t fingerprint, std::optional<std::uint32_t> rank = {});
  // Makes `parent` when only its last part is missing. kInvalid, kNotFound: `parent` can not be meant. Other codes: the
  // cache can not be used now (in use, not ours, read-only, …), which harms nobody.
  static Result<DiskFolder> open(const std::string& parent, const std::string& name);
  DiskFolder(DiskFolder&&) noexcept = default;
  DiskFolder& operator=(DiskFolder&&) noexcept = delete;
  ~DiskFolder();  // unlocks, also what forked children have inherited

  const std::string& path() const { return path_; }
  // Opens a regular file of ours, and makes it when it is missing.
  Result<Descriptor> open_file(const char* name, int extra_flags = 0) const {
    return open_existing(name, O_CREAT | extra_flags);
  }
  Result<Bytes> free_bytes() const;  // of its file system, for us
  // Other caches in the same parent: their names, at most a few.
  std::string neighbours() const;

 private:
  DiskFolder(std::string parent, std::string path, Descriptor folder)
      : parent_(std::move(parent)), path_(std::move(path)), folder_(std::move(folder)) {}
  Status lock();
  Status check_marker();
  bool holds_nothing() const;
  Result<Descriptor> open_existing(const char* name, int extra_flags) const;
  Error not_ours(const std::string& why) const;

  std::string parent_;
  std::string path_;
  Descriptor folder_;
  Descriptor lock_;
};

}  // namespace foreload
