// The card of a stream, of which another process has overwritten any bytes, and its chain's text with the rest of the
// input: what is accepted fits the region, and is written again as it was read.
#include "host/stream_card.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

constexpr std::size_t kFields = 32 * 8;  // the fields, and some of the text behind them

foreload::StreamCard good() {
  return {.ring = {.slots = 2, .batch = 4, .sample_bytes = 3 * 8 * 8},
          .arena = 8192,
          .positions = 100,
          .chain = {.transforms = {foreload::random_resized_crop(8), foreload::random_flip()},
                    .dtype = foreload::DType::kU8}};
}

}  // namespace

// The input: how many words are overwritten, then a place and a word for each, then the chain's text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::vector<std::byte> memory(foreload::StreamCard::kBytes);
  std::ranges::fill(memory, std::byte{0});
  const foreload::StreamCard before = good();
  if (!foreload::write_card(before, memory).ok() || size == 0) return 0;
  std::size_t at = 1;
  for (unsigned patches = data[0] % 16; patches > 0 && at + 9 <= size; --patches, at += 9) {
    std::memcpy(memory.data() + data[at] % kFields / 8 * 8, data + at + 1, 8);
  }
  // One that is not changed at all must be read.
  const auto card = foreload::read_card(memory, before.region_bytes());
  if (!card.ok() && at == 1) std::abort();
  (void)foreload::parse_chain(std::string(reinterpret_cast<const char*>(data) + at, size - at)).ok();
  if (!card.ok()) return 0;
  if (card->region_bytes() != before.region_bytes() || card->ring.slots == 0 || card->ring.slots > 64) std::abort();
  (void)foreload::Chain::compile(card->chain).ok();
  std::vector<std::byte> written(foreload::StreamCard::kBytes);
  if (!foreload::write_card(*card, written).ok()) std::abort();
  const auto again = foreload::read_card(written, before.region_bytes());
  if (!again.ok() || again->arena != card->arena || again->chain.transforms != card->chain.transforms) std::abort();
  return 0;
}
