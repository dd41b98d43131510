#include "store/s3_store.h"

#include <gtest/gtest.h>

#include <string>

#include "store/web_store.h"

namespace foreload {
namespace {

std::unique_ptr<S3Store> store_at(const char* url, S3Access access) {
  auto store = S3Store::open(*parse_url(url), std::move(access));
  EXPECT_TRUE(store.ok());
  return std::move(*store);
}

bool has_header(const HttpRequest& request, std::string_view name) {
  for (const HttpHeader& each : request.headers) {
    if (each.name == name) return true;
  }
  return false;
}

std::string refusal(const S3Store& store, int status, const std::string& code, const std::string& rest = "") {
  HttpResponse response{.status = status};
  response.body = "<Error><Code>" + code + "</Code><Message>why</Message>" + rest + "</Error>";
  return store.refused("key", response).message;
}

TEST(S3StoreTest, BucketsAreHostsAtAmazonAndPathsElsewhere) {
  const auto url = [](const char* folder, S3Access access) {
    return store_at(folder, std::move(access))->get("k e*y", 0, 10).url;
  };
  EXPECT_EQ(url("s3://bucket/a b/", {}), "https://bucket.s3.us-east-1.amazonaws.com/a%20b/k%20e%2Ay");
  EXPECT_EQ(url("s3://bucket/", {.region = "cn-north-1"}), "https://bucket.s3.cn-north-1.amazonaws.com.cn/k%20e%2Ay");
  EXPECT_EQ(url("s3://my.bucket/", {}), "https://s3.us-east-1.amazonaws.com/my.bucket/k%20e%2Ay")
      << "a name with dots does not fit the certificate";
  EXPECT_EQ(url("s3://bucket/", {.endpoint = "http://127.0.0.1:9000"}), "http://127.0.0.1:9000/bucket/k%20e%2Ay");
  EXPECT_EQ(url("s3://bucket/", {.endpoint = "https://host/s3"}), "https://host/s3/bucket/k%20e%2Ay");
}

TEST(S3StoreTest, AnEndpointThatIsNoneIsRefused) {
  for (const char* endpoint : {"s3://x-y", "host:9000", "file:///tmp", "http://u:p@host"}) {
    EXPECT_FALSE(S3Store::open(*parse_url("s3://bucket/"), {.endpoint = endpoint}).ok()) << endpoint;
  }
}

TEST(S3StoreTest, RequestsAreSignedOnlyWithCredentials) {
  const auto anonymous = store_at("s3://bucket/p/", {});
  EXPECT_FALSE(has_header(anonymous->get("k", 0, 1), "Authorization"));
  const auto known = store_at("s3://bucket/p/", {.credentials = {"ID", "secret", "token"}});
  for (const HttpRequest& request : {known->get("k", 5, 10), known->head("k"), known->list({.prefix = "a/b"}, "t=k")}) {
    EXPECT_TRUE(has_header(request, "Authorization"));
    EXPECT_TRUE(has_header(request, "x-amz-security-token"));
  }
  EXPECT_TRUE(has_header(known->get("k", 5, 10), "Range"));
  EXPECT_EQ(known->list({.prefix = "a/b"}, "t=k").url,
            "https://bucket.s3.us-east-1.amazonaws.com/"
            "?continuation-token=t%3Dk&encoding-type=url&list-type=2&prefix=p%2Fa%2Fb");
}

TEST(S3StoreTest, AListingMayBeginBehindAKey) {
  const auto store = store_at("s3://bucket/p/", {.endpoint = "http://host"});
  const KeyRange range{.prefix = "a/", .after = "a/b c", .until = "a/d"};
  EXPECT_EQ(store->list(range, "").url,
            "http://host/bucket/?encoding-type=url&list-type=2&prefix=p%2Fa%2F&start-after=p%2Fa%2Fb%20c");
  EXPECT_EQ(store->list(range, "t").url,
            "http://host/bucket/?continuation-token=t&encoding-type=url&list-type=2&prefix=p%2Fa%2F");
}

TEST(S3StoreTest, RefusalsSayWhatToDo) {
  const auto known = store_at("s3://bucket/p/", {.credentials = {"ID", "secret", ""}});
  EXPECT_NE(refusal(*known, 404, "NoSuchBucket").find("the bucket does not exist"), std::string::npos);
  EXPECT_NE(refusal(*known, 403, "AccessDenied").find("s3:GetObject"), std::string::npos);
  EXPECT_NE(refusal(*known, 403, "SignatureDoesNotMatch").find("AWS_SECRET_ACCESS_KEY"), std::string::npos);
  EXPECT_NE(refusal(*known, 403, "InvalidAccessKeyId").find("AWS_ACCESS_KEY_ID"), std::string::npos);
  EXPECT_NE(refusal(*known, 400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>").find("eu-west-1"),
            std::string::npos);
  EXPECT_NE(refusal(*known, 400, "Odd").find("status 400: Odd: why"), std::string::npos);
  const auto anonymous = store_at("s3://bucket/p/", {});
  EXPECT_NE(refusal(*anonymous, 403, "AccessDenied").find("no credentials were found"), std::string::npos);
  EXPECT_EQ(known->refused("key", {.status = 404}).code, Code::kNotFound);
}

TEST(S3StoreTest, QuotesOfAnEtagDoNotMatter) {
  EXPECT_EQ(validator_of("\"abc\""), validator_of("abc"));
  EXPECT_NE(validator_of("\"abc\""), validator_of("\"abd\""));
  EXPECT_EQ(validator_of(""), 0);
  EXPECT_GT(validator_of("\"abc\""), 0);
}

TEST(WebStoreTest, KeysAreEncodedBelowTheFolder) {
  const auto store = open_web_store(*parse_url("http://host:81/a%20b/"));
  EXPECT_EQ(store->get("c d#.tar", 7, 3).url, "http://host:81/a%20b/c%20d%23.tar");
  EXPECT_EQ(store->get("x", 7, 3).headers.at(0).value, "bytes=7-9");
  EXPECT_EQ(store->head("x").method, "HEAD");
}

}  // namespace
}  // namespace foreload
