// The card of a stream over arbitrary bytes, in a region of whatever size it asks for: what is accepted fits the
// region, and is written again as it was read.
#include "host/stream_card.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::vector<std::byte> memory(foreload::StreamCard::kBytes);
  std::fill(memory.begin(), memory.end(), std::byte{0});
  foreload::Bytes region = 0;
  if (size < sizeof region) return 0;
  std::memcpy(&region, data, sizeof region);
  std::memcpy(memory.data(), data + sizeof region, std::min(size - sizeof region, memory.size()));
  const auto card = foreload::read_card(memory, region);
  if (!card.ok()) return 0;
  if (card->region_bytes() != region || card->ring.slots == 0 || card->ring.slots > 64) std::abort();
  (void)foreload::Chain::compile(card->chain).ok();
  std::vector<std::byte> written(foreload::StreamCard::kBytes);
  if (!foreload::write_card(*card, written).ok()) return 0;  // its text may be longer than what was read
  const auto again = foreload::read_card(written, region);
  if (!again.ok() || again->arena != card->arena || again->chain.transforms != card->chain.transforms) std::abort();
  return 0;
}
