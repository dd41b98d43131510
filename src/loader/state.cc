// A state is a JSON object of six fields. 64-bit numbers that a JavaScript reader would round (hashes, seeds) are
// written as hex strings; a state from another version is refused.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "foreload/loader.h"

namespace foreload {
namespace {

constexpr std::size_t kLongestState = 4096;

Error bad_state(const std::string& what) {
  return {Code::kInvalid, fmt::format("this is no saved state: {}. A state is what Loader::position() returned", what)};
}

Result<std::uint64_t> hex_field(const nlohmann::json& state, const char* name) {
  const auto field = state.find(name);
  if (field == state.end() || !field->is_string())
    return bad_state(fmt::format("\"{}\" is missing or no string", name));
  const auto& text = field->get_ref<const std::string&>();
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || failure != std::errc() || end != text.data() + text.size()) {
    return bad_state(fmt::format("\"{}\" is not 16 hex digits", name));
  }
  return value;
}

Result<std::uint64_t> number_field(const nlohmann::json& state, const char* name) {
  const auto field = state.find(name);
  if (field == state.end() || !field->is_number_unsigned()) {
    return bad_state(fmt::format("\"{}\" is missing or no whole number", name));
  }
  return field->get<std::uint64_t>();
}

}  // namespace

std::string state_to_json(const State& state) {
  const nlohmann::ordered_json json = {{"version", state.version},   {"fingerprint", hex16(state.fingerprint)},
                                       {"seed", hex16(state.seed)},  {"epoch", state.epoch},
                                       {"position", state.position}, {"plan", hex16(state.plan)}};
  return json.dump();
}

Result<State> state_from_json(const std::string& text) {
  if (text.size() > kLongestState) return bad_state(fmt::format("it has {} bytes", text.size()));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return bad_state("it is no JSON object");
  State state;
  FORELOAD_ASSIGN(const std::uint64_t version, number_field(json, "version"));
  if (version != state.version) {
    return bad_state(fmt::format("it has version {}, and this Foreload writes {}", version, state.version));
  }
  FORELOAD_ASSIGN(state.fingerprint, hex_field(json, "fingerprint"));
  FORELOAD_ASSIGN(state.seed, hex_field(json, "seed"));
  FORELOAD_ASSIGN(state.epoch, number_field(json, "epoch"));
  FORELOAD_ASSIGN(state.position, number_field(json, "position"));
  FORELOAD_ASSIGN(state.plan, hex_field(json, "plan"));
  return state;
}

}  // namespace foreload
