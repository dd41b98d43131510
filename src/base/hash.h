// xxh3-64: for fingerprints, checksums and plan hashes. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace foreload {

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);

// Streaming form. Integers are fed as 8 bytes, little-endian; strings as their length, then bytes.
class Hasher {
 public:
  explicit Hasher(std::uint64_t seed = 0);
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& add(std::uint64_t value);
  Hasher& add(std::string_view text);
  Hasher& add_raw(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hex16(std::uint64_t value);  // 16 lower-case hex digits

}  // namespace foreload
