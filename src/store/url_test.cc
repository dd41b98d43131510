#include "store/url.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foreload {
namespace {

std::string fault(std::string_view text) {
  const auto url = parse_url(text);
  return url ? "" : url.error().message;
}

TEST(UrlTest, PartsAreTakenApart) {
  const auto web = parse_url("https://Example.COM:8443/a%20b/c.tar");
  ASSERT_TRUE(web.ok());
  EXPECT_EQ(web->scheme, "https");
  EXPECT_EQ(web->host, "example.com:8443");
  EXPECT_EQ(web->path, "a b/c.tar");
  const auto bucket = parse_url("s3://my-bucket/prefix/a%20b #?.tar");
  ASSERT_TRUE(bucket.ok());
  EXPECT_EQ(bucket->host, "my-bucket");
  EXPECT_EQ(bucket->path, "prefix/a%20b #?.tar") << "keys are literal";
  EXPECT_EQ(parse_url("s3://my-bucket")->path, "");
  EXPECT_EQ(parse_url("http://[::1]:80/x")->host, "[::1]:80");
  EXPECT_TRUE(parse_url("http://169.254.169.254/x").ok()) << "whom to ask is the user's choice";
}

TEST(UrlTest, SpellingsOfOnePathAreOneText) {
  for (const char* spelling : {"http://host/a%7Eb/%C3%a9", "http://HOST/a~b/%c3%A9", "http://host/a~b/é"}) {
    EXPECT_EQ(parse_url(spelling)->text(), "http://host/a~b/%C3%A9") << spelling;
  }
}

TEST(UrlTest, WhatCouldLeadElsewhereIsRefused) {
  const std::vector<std::string> refused{
      "http://user@host/x",
      "http://user:secret@host/x",
      "http://host/x#part",
      "http://host/x?versionId=1",
      "http://host/../x",
      "http://host/a/%2e%2e/x",
      "http://host/a/%252e%252e/x",
      "http://host/a/./x",
      "http://host/a%2fb",
      "http://host/a%00b",
      "http://host/a%0d%0aX-Header:1",
      "http://host/a\nb",
      std::string("http://host/a\0b", 15),
      "http://host/%zz",
      "http://host/%4",
      "http://host:0/x",
      "http://host:65536/x",
      "http://host:8x/x",
      "http://ho st/x",
      "http://-host/x",
      "http:///x",
      "http://",
      "http:host/x",
      "http://host//x",
      "http://[::1/x",
      "s3://",
      "s3:///key",
      "s3://ab/key",
      "s3://bu:80/key",
      "s3://user@bucket/key",
      "s3://bucket/a/../b",
      "s3://bucket/a/%2e%2e/b",
      "s3://buc..ket/a",
      "file:///etc/passwd",
      "ftp://host/x",
      "pipe:cat",
      "http://host/" + std::string(4096, 'x'),
      "s3://bucket/" + std::string(1025, 'x'),
      "http://" + std::string(256, 'h') + "/x",
  };
  for (const std::string& text : refused) {
    EXPECT_NE(fault(text), "") << text;
    EXPECT_EQ(fault(text).find("secret"), std::string::npos);
    EXPECT_LT(fault(text).size(), 400u) << text;
    for (const char c : fault(text)) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
  }
}

TEST(UrlTest, EncodingAndDecodingAreInverse) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(percent_decode(percent_encode(all, true)), all);
  EXPECT_EQ(percent_encode("a/b c*~=:+", true), "a/b%20c%2A~%3D%3A%2B");
  EXPECT_EQ(percent_encode("a/b", false), "a%2Fb");
  for (const char* broken : {"%", "%4", "a%g0", "%%20"}) EXPECT_FALSE(percent_decode(broken)) << broken;
}

}  // namespace
}  // namespace foreload
