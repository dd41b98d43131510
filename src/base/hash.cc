#include "base/hash.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <array>
#include <utility>

// On x86 the library also has code for wider vectors, chosen at run time, but only under other names.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#include "base/check.h"

namespace foreload {

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct Hasher::State {
  State() : xxh(XXH3_createState()) { FORELOAD_CHECK(xxh != nullptr, "out of memory for a hash state"); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* const xxh;
};

Hasher::Hasher(std::uint64_t seed) : state_(std::make_unique<State>()) {
  FORELOAD_CHECK(XXH3_64bits_reset_withSeed(state_->xxh, seed) == XXH_OK, "a fresh state can be reset");
}

Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(std::uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return add_raw(bytes);
}

Hasher& Hasher::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  return add_raw(std::as_bytes(std::span(text.data(), text.size())));
}

Hasher& Hasher::add_raw(std::span<const std::byte> bytes) {
  FORELOAD_CHECK(XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size()) == XXH_OK, "input is readable");
  return *this;
}

std::uint64_t Hasher::value() const {
  return XXH3_64bits_digest(state_->xxh);
}

std::string hex16(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

}  // namespace foreload
