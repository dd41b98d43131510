// Saved states are untrusted: whatever the bytes are, parsing ends with a state or an error, and a state survives the
// way back.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "foreload/loader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto state = foreload::state_from_json(text);
  if (!state) return 0;
  const auto again = foreload::state_from_json(foreload::state_to_json(*state));
  if (!again || !(*again == *state)) std::abort();
  return 0;
}
