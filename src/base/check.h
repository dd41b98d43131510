// FORELOAD_CHECK: a programmer's error ends the process, also in release builds.
#pragma once

namespace foreload {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

}  // namespace foreload

#define FORELOAD_CHECK(condition, why)                               \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::foreload::check_failed(__FILE__, __LINE__, #condition, why); \
  } while (false)
