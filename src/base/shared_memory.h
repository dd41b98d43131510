// SharedMemory: an unnamed memory file that processes map together. It disappears with the last of them. Its size is
// sealed, so that nobody can pull pages away from under the others, and pages are reserved before they are touched: a
// machine without room is an error here, never a signal later.
#pragma once

#include <span>

#include "base/files.h"
#include "base/region.h"
#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class SharedMemory {
 public:
  // Zeroed. Nothing is reserved yet.
  static Result<SharedMemory> create(Bytes bytes, const char* purpose);
  // What another process handed over. kInvalid: it is no memory file, its size is another or not sealed.
  static Result<SharedMemory> adopt(Descriptor file, Bytes bytes, const char* purpose);

  std::span<std::byte> bytes() const { return region_.bytes(); }
  int file() const { return file_.get(); }

  // Makes the machine promise these pages, as long as `beside`, and what any process needs, is left. kNoMemory: it has
  // not so many. Pieces that were taken by then stay: others may reserve the same at the same time.
  Status reserve(Bytes offset, Bytes bytes, Bytes beside = 0) const;

 private:
  SharedMemory(Descriptor file, Region region) : file_(std::move(file)), region_(std::move(region)) {}
  Descriptor file_;
  Region region_;
};

}  // namespace foreload
