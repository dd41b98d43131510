// Path style (ENDPOINT/BUCKET/KEY) for endpoints that are named, because only Amazon is sure to have a host name for
// every bucket; host style (BUCKET.s3.REGION.amazonaws.com) for Amazon's own, except for buckets with dots, whose names
// do not fit the certificate.
#include "store/s3_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "store/sigv4.h"

namespace foreload {
namespace {

constexpr std::uint64_t kMostPages = 1 << 20;
constexpr std::uint64_t kMostObjects = 1 << 25;
constexpr unsigned kMostEmptyPages = 1000;  // in a row
constexpr std::size_t kShownBytes = 300;

// What is known about an error beyond its name.
struct Advice {
  std::string_view code;
  Code kind;
  std::string_view text;
};
constexpr std::array<Advice, 11> kAdvice{{
    {"NoSuchBucket", Code::kNotFound, "the bucket does not exist; check its name, the region and the endpoint"},
    {"NoSuchKey", Code::kNotFound, "there is no such object"},
    {"AccessDenied", Code::kIo, "these credentials may not read it; s3:GetObject and s3:ListBucket are needed"},
    {"SignatureDoesNotMatch", Code::kIo,
     "the signature is wrong; check AWS_SECRET_ACCESS_KEY, the region and the clock of this machine"},
    {"InvalidAccessKeyId", Code::kIo, "the access key is not known there; check AWS_ACCESS_KEY_ID and the endpoint"},
    {"ExpiredToken", Code::kIo, "the session token has expired; get new credentials"},
    {"InvalidToken", Code::kIo, "the session token is not valid; check AWS_SESSION_TOKEN"},
    {"RequestTimeTooSkewed", Code::kIo, "the clock of this machine differs too much from the server's; set it"},
    {"PermanentRedirect", Code::kIo, "the bucket is in another region; set AWS_REGION to it"},
    {"AuthorizationHeaderMalformed", Code::kIo, "the bucket is in another region; set AWS_REGION to it"},
    {"IllegalLocationConstraintException", Code::kIo, "the bucket is in another region; set AWS_REGION to it"},
}};

constexpr std::string_view kNoCredentials =
    "access is denied, and no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE";

// The server's own words.
std::string shown(std::string_view text) {
  std::string plain;
  for (const char c : text.substr(0, kShownBytes)) plain += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return plain;
}

Result<std::string> base_of(const std::string& bucket, const S3Access& access) {
  if (access.endpoint.empty()) {
    const bool in_china = access.region.substr(0, 3) == "cn-";
    const std::string host = fmt::format("s3.{}.amazonaws.com{}", access.region, in_china ? ".cn" : "");
    const bool has_dots = bucket.find('.') != std::string::npos;
    return has_dots ? fmt::format("https://{}/{}/", host, bucket) : fmt::format("https://{}.{}/", bucket, host);
  }
  auto endpoint = parse_url(access.endpoint);
  if (!endpoint || endpoint->is_s3()) {
    return Error{Code::kInvalid, fmt::format("the S3 endpoint (AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL) is not usable: "
                                             "{}",
                                             endpoint ? "s3: is none; http: or https: is" : endpoint.error().message)};
  }
  if (!endpoint->path.empty() && endpoint->path.back() != '/') endpoint->path += '/';
  return fmt::format("{}{}/", endpoint->text(), bucket);
}

}  // namespace

Result<std::unique_ptr<S3Store>> S3Store::open(const Url& folder, S3Access access) {
  FORELOAD_CHECK(folder.is_s3() && (folder.path.empty() || folder.path.back() == '/'), "a folder of a bucket");
  FORELOAD_ASSIGN(std::string base, base_of(folder.host, access));
  return std::unique_ptr<S3Store>(new S3Store(folder, std::move(access), std::move(base)));
}

std::string S3Store::display(std::string_view key) const {
  return folder_.text().append(key);
}

HttpRequest S3Store::signed_request(HttpRequest request) const {
  if (access_.credentials.are_there()) {
    sign_v4(request, access_.credentials, access_.region, static_cast<std::int64_t>(std::time(nullptr)));
  }
  return request;
}

HttpRequest S3Store::get(std::string_view key, Bytes offset, Bytes length) const {
  return signed_request({"GET", url_of(key), {range_header(offset, length)}});
}

HttpRequest S3Store::head(std::string_view key) const {
  return signed_request({"HEAD", url_of(key), {}});
}

HttpRequest S3Store::list(const KeyRange& range, std::string_view token) const {
  std::string url = base_ + "?";
  if (!token.empty()) url += fmt::format("continuation-token={}&", percent_encode(token, false));
  url += "encoding-type=url&list-type=2&prefix=" + percent_encode(folder_.path + range.prefix, false);
  if (token.empty() && !range.after.empty()) {
    url += "&start-after=" + percent_encode(folder_.path + range.after, false);
  }
  return signed_request({"GET", std::move(url), {}});
}

Error S3Store::refused(std::string_view key, const HttpResponse& response) const {
  const auto error = parse_s3_error(response.body);
  const bool is_denied = response.status == 401 || response.status == 403;
  if (is_denied && !access_.credentials.are_there()) {
    return {Code::kIo, fmt::format("{}: {}", display(key), kNoCredentials)};
  }
  if (!error) return ObjectStore::refused(key, response);
  for (const Advice& advice : kAdvice) {
    if (advice.code != error->code) continue;
    const std::string region = error->region.empty() ? "" : fmt::format(" (it is {})", shown(error->region));
    return {advice.kind, fmt::format("{}: {}{} ({})", display(key), advice.text, region, advice.code)};
  }
  return {Code::kIo, fmt::format("{}: the server answers with status {}: {}: {}", display(key), response.status,
                                 shown(error->code), shown(error->message))};
}

Status list_objects(const S3Store& store, HttpClient& client, const KeyRange& range,
                    const std::function<Status(ListedObject)>& take) {
  const std::string begins_with = store.prefix() + range.prefix;
  const std::string place = store.display(range.prefix);
  std::string token;
  std::unordered_set<std::uint64_t> tokens;
  std::uint64_t objects = 0;
  unsigned empty = 0;
  for (std::uint64_t number = 0; number < kMostPages && objects < kMostObjects; ++number) {
    FORELOAD_ASSIGN(const HttpResponse response,
                    client.send([&] { return store.list(range, token); }, kLongestListPage));
    if (response.status != 200) return store.refused(range.prefix, response);
    auto page = parse_list_page(response.body);
    if (!page) {
      return Error{Code::kIo, fmt::format("cannot list {}: {}; is this an S3 endpoint?", place, page.error().message)};
    }
    objects += page->objects.size();
    empty = page->objects.empty() ? empty + 1 : 0;
    if (empty > kMostEmptyPages) break;
    for (ListedObject& object : page->objects) {
      if (object.key.compare(0, begins_with.size(), begins_with) != 0) {
        return Error{Code::kIo, fmt::format("the listing of {} has a key that does not belong there: {}", place,
                                            shown(object.key))};
      }
      object.key.erase(0, store.prefix().size());
      if (!range.after.empty() && object.key <= range.after) {
        return Error{Code::kIo, fmt::format("the listing of {} does not begin where it was asked to", place)};
      }
      if (!range.until.empty() && object.key > range.until) return {};
      FORELOAD_TRY(take(std::move(object)));
    }
    if (page->next_token.empty()) return {};
    token = std::move(page->next_token);
    if (!tokens.insert(hash_bytes(std::as_bytes(std::span(token)))).second) break;
  }
  return Error{Code::kIo, fmt::format("the listing of {} does not end, or has more than {} objects: name a longer "
                                      "prefix, or pack the samples into tar shards",
                                      place, format_count(kMostObjects))};
}

}  // namespace foreload
