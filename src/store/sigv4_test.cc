// The first three are the examples of Amazon's documentation of the algorithm; thousands of random requests are
// compared with botocore by tests/signing_test.py.
#include "store/sigv4.h"

#include <gtest/gtest.h>

#include <string>

namespace foreload {
namespace {

const Credentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr std::int64_t kTime = 1369353600;  // 20130524T000000Z

std::string header(const HttpRequest& request, std::string_view name) {
  for (const HttpHeader& each : request.headers) {
    if (each.name == name) return each.value;
  }
  return "";
}

std::string signature(HttpRequest request, const Credentials& credentials = kExample) {
  sign_v4(request, credentials, "us-east-1", kTime);
  const std::string authorization = header(request, "Authorization");
  return authorization.substr(authorization.rfind('=') + 1);
}

TEST(SigV4Test, PublishedExamplesComeOutAsPublished) {
  const std::string host = "https://examplebucket.s3.amazonaws.com";
  EXPECT_EQ(signature({"GET", host + "/test.txt", {{"Range", "bytes=0-9"}}}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(signature({"GET", host + "/?lifecycle", {}}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature({"GET", host + "/?max-keys=2&prefix=J", {}}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4Test, HeadersAreThoseOfTheExample) {
  HttpRequest request{"GET", "https://examplebucket.s3.amazonaws.com/test.txt", {{"Range", "bytes=0-9"}}};
  sign_v4(request, kExample, "us-east-1", kTime);
  EXPECT_EQ(header(request, "x-amz-date"), "20130524T000000Z");
  EXPECT_EQ(header(request, "x-amz-content-sha256"),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(header(request, "Authorization").substr(0, 142),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,");
}

TEST(SigV4Test, OrderOfTheQueryAndTheUsualPortDoNotMatter) {
  const std::string one = signature({"GET", "https://host/?b=2&a=1&a=0&c", {}});
  EXPECT_EQ(signature({"GET", "https://host:443/?c=&a=0&a=1&b=2", {}}), one);
  EXPECT_NE(signature({"GET", "https://host:444/?c=&a=0&a=1&b=2", {}}), one);
  EXPECT_EQ(signature({"GET", "https://host", {}}), signature({"GET", "https://host/", {}}));
}

TEST(SigV4Test, EveryPartIsSigned) {
  const HttpRequest request{"GET", "https://host/key", {{"Range", "bytes=0-9"}}};
  const std::string one = signature(request);
  EXPECT_NE(signature({"HEAD", "https://host/key", {{"Range", "bytes=0-9"}}}), one);
  EXPECT_NE(signature({"GET", "https://host/kex", {{"Range", "bytes=0-9"}}}), one);
  EXPECT_NE(signature({"GET", "https://host/key", {{"Range", "bytes=0-8"}}}), one);
  EXPECT_NE(signature({"GET", "https://host/key?a", {{"Range", "bytes=0-9"}}}), one);
  EXPECT_NE(signature(request, {kExample.access_key, kExample.secret_key, "token"}), one);
  EXPECT_NE(signature(request, {kExample.access_key, "other", ""}), one);
}

TEST(SigV4Test, TheSecretIsInNoHeader) {
  HttpRequest request{"GET", "https://host/key", {}};
  sign_v4(request, kExample, "us-east-1", kTime);
  for (const HttpHeader& each : request.headers) {
    EXPECT_EQ(each.value.find(kExample.secret_key), std::string::npos) << each.name;
  }
}

}  // namespace
}  // namespace foreload
