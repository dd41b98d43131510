#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace foreload {

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "foreload: %s:%d: check failed: %s (%s). This is a defect: please report it.\n", file, line,
               condition, why);
  std::abort();
}

}  // namespace foreload
