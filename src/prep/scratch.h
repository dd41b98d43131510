// Scratch: the working memory of one ChainRunner. It grows to what a sample needs and is then handed out in
// pieces, so that a run of similar samples allocates nothing. Not thread-safe; one per runner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class Scratch {
 public:
  static constexpr std::size_t kAlignment = 64;

  // What take() uses up for `bytes`.
  static constexpr Bytes padded(Bytes bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  // Takes all pieces back and makes room for `bytes`; contents are lost. kNoMemory: the machine has no more.
  Status reset(Bytes bytes);
  // REQUIRES: padded() of all pieces since reset() fits what was reserved. Not initialised.
  template <typename T>
  std::span<T> take(std::size_t count) {
    return {static_cast<T*>(take_bytes(count * sizeof(T))), count};
  }

  Bytes capacity() const { return capacity_; }
  // Frees everything when more than `keep` is held.
  void trim(Bytes keep);

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  void* take_bytes(std::size_t bytes);

  std::unique_ptr<std::byte, Free> data_;
  Bytes capacity_ = 0;
  Bytes reserved_ = 0;
  Bytes taken_ = 0;
};

}  // namespace foreload
