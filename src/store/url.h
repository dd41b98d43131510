// Url: where objects are, as people write it: http://host[:port]/path, https://…, s3://bucket/prefix. Strict, because
// these texts decide what is connected to: no user names, no fragments, no queries, no control characters, no "..".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "foreload/result.h"

namespace foreload {

inline constexpr std::size_t kLongestUrl = 4096;
inline constexpr std::size_t kLongestKey = 1024;  // as S3 has it

struct Url {
  std::string scheme;  // http, https or s3
  std::string host;    // in lower case, with the port if one is named; of s3: the bucket
  std::string path;    // decoded, without the first slash

  bool is_s3() const { return scheme == "s3"; }
  std::string text() const;  // the same for all spellings; s3 as it is written, the others encoded
};

bool is_url(std::string_view text);  // begins with http:, https: or s3:

// kInvalid says what is wrong with it. Keys of s3 are taken literally, as other tools do; paths of the others may have
// percent escapes.
Result<Url> parse_url(std::string_view text);

// Everything but letters, digits, "-._~" and, if `keep_slashes`, "/" as %XX.
std::string percent_encode(std::string_view text, bool keep_slashes);
// Nothing when an escape is not one.
std::optional<std::string> percent_decode(std::string_view text);

// Why `path` can not be the path of an object; empty when it can.
std::string_view fault_of_path(std::string_view path);

}  // namespace foreload
