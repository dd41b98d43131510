// The few plain types that every part of Foreload speaks: ids, positions, sizes, time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace foreload {

using SampleId = std::uint64_t;  // dense: 0 … N-1
using Position = std::uint64_t;  // place in an epoch's order
using Epoch = std::uint64_t;
using Bytes = std::uint64_t;
using Duration = std::chrono::nanoseconds;
using Time = std::chrono::nanoseconds;  // steady clock, since an arbitrary start

inline constexpr std::int64_t kNoLabel = -1;

inline namespace literals {
constexpr Bytes operator""_KiB(unsigned long long n) {
  return n << 10;
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return n << 20;
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return n << 30;
}
}  // namespace literals

}  // namespace foreload
