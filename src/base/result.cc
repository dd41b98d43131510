#include "foreload/result.h"

namespace foreload {

const char* code_name(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "Invalid";
    case Code::kNotFound:
      return "NotFound";
    case Code::kDataChanged:
      return "DataChanged";
    case Code::kBadSample:
      return "BadSample";
    case Code::kIo:
      return "Io";
    case Code::kNoMemory:
      return "NoMemory";
    case Code::kMismatch:
      return "Mismatch";
    case Code::kCancelled:
      return "Cancelled";
  }
  return "Unknown";
}

}  // namespace foreload
