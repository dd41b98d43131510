// Small text: sizes and durations as people write them, and what stands around words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

// Without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n");

// "8GiB", "100MB", "64k", "1.5 GB" or plain bytes. Decimal and binary units as written.
Result<Bytes> parse_bytes(std::string_view text);
std::string format_bytes(Bytes bytes);                   // "1.4 GiB"
Result<Duration> parse_duration(std::string_view text);  // "5ms", "2s", "100us"
std::string format_duration(Duration duration);
std::string format_count(std::uint64_t count);  // "1,281,167"
// "1 sample", "1,200 samples"; `many` where the plural is not the word with an s.
std::string counted(std::uint64_t count, std::string_view one, std::string_view many = {});

}  // namespace foreload
