// HostPort: "name:7433", "10.0.0.1:7433" or "[fd00::1]:7433", taken apart. Nothing is looked up. Parsing is total.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "foreload/result.h"

namespace foreload {

struct HostPort {
  static constexpr std::size_t kLongestHost = 240;  // with its port it is a text for peers

  std::string host{};      // without brackets
  std::uint16_t port = 0;  // 0: any

  // `default_port`: when none is written; 0: one has to be. kInvalid says what is wrong, without the text itself.
  static Result<HostPort> parse(std::string_view text, std::uint16_t default_port);
  std::string text() const;

  bool operator==(const HostPort&) const = default;
};

// The name with the port of that address, if its own is 0.
std::string served_name(const std::string& name, const std::string& address);

}  // namespace foreload
