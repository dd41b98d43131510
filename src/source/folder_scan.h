// Walks a folder of samples: lists every directory below it (in parallel over the classes), then asks for the size
// and time of every file (in parallel over all files). Links are followed as long as they stay below the root.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "source/dataset.h"
#include "source/directory.h"

namespace foreload {

// Many names in one piece of memory.
class NameList {
 public:
  void add(std::string_view name);
  void sort();  // by bytes
  std::size_t size() const { return starts_.size(); }
  const char* operator[](std::size_t i) const { return text_.data() + starts_[i]; }

 private:
  std::string text_;  // each name is followed by a NUL
  std::vector<std::size_t> starts_;
};

struct FileFacts {
  Bytes length = 0;
  std::int64_t mtime_ns = 0;
  bool is_there = false;
};

struct ScannedFolder {
  std::string path;  // relative to the root
  DirectoryFacts facts;
  NameList files;                // sorted
  std::vector<FileFacts> stats;  // of `files`; filled in by the second step
};

struct ScannedClass {
  std::string name;
  std::vector<ScannedFolder> folders;  // the class folder and all below it, sorted by path
};

struct FolderScan {
  ScannedFolder root;                 // with the files directly in it
  std::vector<ScannedClass> classes;  // sorted by name; all top-level folders, also empty ones
};

// `root` is open; `display` is what messages call it.
Result<FolderScan> scan_folder(int root, const std::string& display, ScanContext& context);

}  // namespace foreload
