// Listing directories below a root without leaving it. A listing is summed up in one number, so that a later look can
// tell whether anything was added, removed or renamed without knowing the names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "foreload/result.h"

namespace foreload {

enum class EntryKind { kFile, kDirectory, kLink, kSpecial };

struct DirectoryFacts {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;  // before the first entry was read, so that later changes show
  std::uint64_t listing = 0;  // Σ hash(name, kind) over the entries that are not hidden
};

// A descriptor of the directory `path` ("" is the root itself), or -errno. EXDEV, ELOOP: a link leads outside.
int open_directory_below(int root, const std::string& path);

// Calls `visit` for every entry that is not hidden, in no particular order. `directory` is left open.
Result<DirectoryFacts> list_directory(int directory, const std::string& display,
                                      const std::function<void(std::string_view, EntryKind)>& visit);
// The same without looking at the entries.
Result<DirectoryFacts> examine_directory(int root, const std::string& path);

std::int64_t wall_clock_ns();  // comparable to mtimes

}  // namespace foreload
