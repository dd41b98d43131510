// Whether this is a build with ASan or TSan: instrumented code is ten to a hundred times slower.
#pragma once

namespace foreload {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kHasSanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kHasSanitizer = false;
#endif

}  // namespace foreload
