// What S3 answers: pages of a listing (ListObjectsV2) and errors. The XML is untrusted; pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

inline constexpr Bytes kLongestListPage = 16_MiB;  // 1,000 keys, every byte of them escaped, take 4
inline constexpr std::size_t kMostKeysInPage = 10'000;

struct ListedObject {
  std::string key;
  Bytes size = 0;
  std::string etag;  // as the header has it, but quotes may be missing
};

struct ListPage {
  std::vector<ListedObject> objects;
  std::string next_token;  // empty: this was the last page
};

// kInvalid: this is no page of a listing, and why.
Result<ListPage> parse_list_page(std::string_view xml);

struct S3Error {
  std::string code;  // "NoSuchBucket"
  std::string message;
  std::string region;  // where the bucket is, when the server tells
};
// Nothing when the text is none.
std::optional<S3Error> parse_s3_error(std::string_view xml);

}  // namespace foreload
