#include "store/s3_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/xml.h"

namespace foreload {
namespace {

std::string page(const std::string& content) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
         "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
         "<Name>bucket</Name>" +
         content + "</ListBucketResult>\n";
}

std::string object(const std::string& key, const std::string& rest = "<Size>5</Size>") {
  return "<Contents><Key>" + key + "</Key>" + rest + "<Owner><ID>x</ID><Size>7</Size></Owner></Contents>";
}

TEST(S3ListTest, ObjectsAndTokenAreRead) {
  const auto read = parse_list_page(
      page("<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b=</NextContinuationToken>" +
           object("a/1.jpg", "<ETag>&quot;0ff&quot;</ETag><Size>18446744073709551615</Size>") +
           object("&lt;&#233;&#x1F600;&apos;&gt;") + "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->objects.size(), 2u);
  EXPECT_EQ(read->objects[0].key, "a/1.jpg");
  EXPECT_EQ(read->objects[0].size, 18446744073709551615u);
  EXPECT_EQ(read->objects[0].etag, "\"0ff\"");
  EXPECT_EQ(read->objects[1].key, "<é😀'>");
  EXPECT_EQ(read->objects[1].size, 5u) << "the size of an inner element is not the object's";
  EXPECT_EQ(read->next_token, "a&b=");
}

TEST(S3ListTest, KeysAreDecodedOnlyWhereTheServerEncodedThem) {
  const std::string encoding = "<EncodingType>url</EncodingType>";
  EXPECT_EQ(parse_list_page(page(object("a+b%2Bc%20d")))->objects[0].key, "a+b%2Bc%20d");
  EXPECT_EQ(parse_list_page(page(object("a+b%2Bc%20d") + encoding))->objects[0].key, "a b+c d");
  EXPECT_FALSE(parse_list_page(page(encoding + object("a%zz"))).ok());
}

TEST(S3ListTest, AnEmptyBucketIsAPage) {
  const auto read = parse_list_page("<ListBucketResult><IsTruncated>false</IsTruncated><Prefix/></ListBucketResult>");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->objects.empty());
  EXPECT_EQ(read->next_token, "");
}

TEST(S3ListTest, WhatIsNoPageIsRefused) {
  const std::string deep = [] {
    std::string text;
    for (std::size_t i = 0; i <= kDeepestXml; ++i) text += "<a>";
    return text;
  }();
  const std::vector<std::string> refused{
      "",
      "<",
      "hello",
      "<html><body/></html>",
      "<ListBucketResult>",
      "<ListBucketResult></Other>",
      "<ListBucketResult/><ListBucketResult/>",
      "<ListBucketResult/>text",
      "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>",
      page("<![CDATA[x]]>"),
      page("<!-- x -->"),
      page("<?php ?>"),
      page("&nbsp;"),
      page("&#0;"),
      page("&#xD800;"),
      page("&#x110000;"),
      page("&amp"),
      page("<a b=c/>"),
      page("<a b/>"),
      page("<a b=\"<\"/>"),
      page("<a b=\"1\"c=\"2\"/>"),
      page("<a"),
      page("<1\xff/>"),
      page(std::string("\0", 1)),
      page(deep),
      page(object("k", "<Size>x</Size>")),
      page(object("k", "<Size>-1</Size>")),
      page(object("k", "<Size>18446744073709551616</Size>")),
      page(object("k", "")),
      page(object("")),
      page("<Contents><Size>1</Size></Contents>"),
      page(object(std::string(1025, 'k'))),
      page(object(std::string(kLongestXmlText + 1, 'k'))),
      page("<" + std::string(kLongestXmlName + 1, 'n') + "/>"),
      page("<IsTruncated>true</IsTruncated>"),
      page("<NextContinuationToken>" + std::string(9000, 't') + "</NextContinuationToken>"),
  };
  for (const std::string& text : refused) EXPECT_FALSE(parse_list_page(text).ok()) << text.substr(0, 200);
}

TEST(S3ListTest, AnEndlessPageIsRefused) {
  std::string many;
  for (std::size_t i = 0; i <= kMostKeysInPage; ++i) many += object("k");
  EXPECT_FALSE(parse_list_page(page(many)).ok());
}

TEST(S3ListTest, EveryCutOfAPageIsRefused) {
  const std::string whole = page("<IsTruncated>false</IsTruncated>" + object("a&amp;b"));
  ASSERT_TRUE(parse_list_page(whole).ok());
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    EXPECT_FALSE(parse_list_page(whole.substr(0, length)).ok()) << length;
  }
}

TEST(S3ListTest, ErrorsAreRead) {
  const auto error = parse_s3_error(
      "<?xml version='1.0'?><Error><Code>PermanentRedirect</Code><Message>Go &amp; see</Message>"
      "<Region>eu-west-1</Region><Details><Code>inner</Code></Details></Error>");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, "PermanentRedirect");
  EXPECT_EQ(error->message, "Go & see");
  EXPECT_EQ(error->region, "eu-west-1");
  for (const char* text : {"", "<html/>", "<Error/>", "<Error><Code>x</Code>"})
    EXPECT_FALSE(parse_s3_error(text)) << text;
}

}  // namespace
}  // namespace foreload
