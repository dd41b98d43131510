// What stands in a control block; for control*.cc alone.
//
// Block:  [ header ][ 256 cores ][ 64 members ][ 256 objects ]
#pragma once

#include "host/control.h"

namespace foreload {

inline constexpr std::uint64_t kControlMagic = 0x33306c7274634c46;  // "FLctrl03"

struct alignas(64) Control::MemberEntry {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint64_t> reserved{0};
  std::atomic<std::uint32_t> process{0};
  std::atomic<std::uint32_t> workers{0};
};

struct alignas(64) Control::ObjectEntry {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint64_t> reserved{0};
  std::atomic<std::int64_t> last_used{0};
  std::atomic<std::uint32_t> kind{0};
  std::atomic<std::uint64_t> first{0};
  std::atomic<std::uint64_t> second{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> lead{0};  // of a ring that others may read: which time it is that somebody began to
  std::array<std::atomic<std::uint32_t>, kMostMembers> shares{};
};

// Who runs on a core, and since when.
struct alignas(64) Control::CoreEntry {
  std::atomic<std::uint64_t> word{0};  // ClaimWord; generation: one more each time it is taken
  std::atomic<std::int64_t> renewed{0};
};

struct Control::Block {
  std::uint64_t magic = kControlMagic;
  std::uint64_t size = 0;
  std::uint64_t budget = 0;
  std::uint32_t cores = 1;
  std::atomic<std::uint32_t> version{0};
  alignas(64) WorkSignal work;
  alignas(64) WorkSignal core;
  alignas(64) WorkSignal peer;
  std::atomic<std::uint64_t> lock{0};  // ClaimWord of the holder; phase 1
  std::atomic<std::uint32_t> lock_signal{0};
  std::atomic<std::uint64_t> leads{0};  // so many times somebody began to feed a ring that others may read
  std::array<CoreEntry, kMostCores> core_table;
  std::array<MemberEntry, kMostMembers> members;
  std::array<ObjectEntry, kMostObjects> objects;
};

}  // namespace foreload
