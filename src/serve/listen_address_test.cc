#include "serve/listen_address.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

std::string parsed(const std::string& text) {
  const auto address = ListenAddress::parse(text);
  return address.ok() ? address->text() : code_name(address.error().code);
}

TEST(ListenAddressTest, ABarePortIsOnLoopback) {
  EXPECT_EQ(parsed("9464"), "127.0.0.1:9464");
  EXPECT_EQ(parsed("0"), "127.0.0.1:0");
  EXPECT_TRUE(ListenAddress::parse("9464")->is_loopback());
}

TEST(ListenAddressTest, AddressesOfBothKindsAreTakenAsWritten) {
  EXPECT_EQ(parsed("127.0.0.2:80"), "127.0.0.2:80");
  EXPECT_EQ(parsed("[::1]:65535"), "[::1]:65535");
  EXPECT_EQ(parsed("0.0.0.0:1"), "0.0.0.0:1");
  EXPECT_EQ(parsed("[::]:1"), "[::]:1");
}

TEST(ListenAddressTest, WhatOthersCanReachIsNotLoopback) {
  for (const char* text : {"127.0.0.1:1", "127.255.0.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_TRUE(ListenAddress::parse(text)->is_loopback()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "128.0.0.1:1", "[2001:db8::1]:1"}) {
    EXPECT_FALSE(ListenAddress::parse(text)->is_loopback()) << text;
  }
}

TEST(ListenAddressTest, WhatIsNoAddressIsRefusedAndNamed) {
  const std::string zero("127.0.0.1\0:80", 13);
  for (const std::string& text : {std::string(),
                                  std::string(":"),
                                  std::string(":9464"),
                                  std::string("65536"),
                                  std::string("-1"),
                                  std::string("+1"),
                                  std::string(" 1"),
                                  std::string("1 "),
                                  std::string("0x10"),
                                  std::string("http"),
                                  std::string("127.0.0.1"),
                                  std::string("127.0.0.1:"),
                                  std::string("127.0.0.1:99999999999999999999"),
                                  std::string("::1:9464"),
                                  std::string("::1"),
                                  std::string("[::1]"),
                                  std::string("[]:1"),
                                  std::string("[127.0.0.1]:1"),
                                  std::string("[::1:1"),
                                  std::string("[:x]:1"),
                                  std::string("1.2.3.4]:1"),
                                  zero}) {
    const auto address = ListenAddress::parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.error().code, Code::kInvalid);
    EXPECT_NE(address.error().message.find(text), std::string::npos) << address.error().message;
    EXPECT_NE(address.error().message.find("HOST:PORT"), std::string::npos) << address.error().message;
  }
}

TEST(ListenAddressTest, PortZeroPicksOneThatCanBeAskedFor) {
  const auto socket = ListenAddress::parse("0")->listen();
  ASSERT_TRUE(socket.ok()) << socket.error().message;
  const auto address = ListenAddress::of_socket(socket->get());
  ASSERT_TRUE(address.ok());
  EXPECT_NE(address->port(), 0);
  EXPECT_TRUE(address->is_loopback());
}

TEST(ListenAddressTest, AnAddressThatIsTakenSaysSo) {
  const auto first = ListenAddress::parse("0")->listen();
  ASSERT_TRUE(first.ok());
  const auto address = ListenAddress::of_socket(first->get());
  const auto second = address->listen();
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(address->text()), std::string::npos) << second.error().message;
  EXPECT_NE(second.error().message.find("another port"), std::string::npos) << second.error().message;
}

TEST(ListenAddressTest, AnAddressOfAnotherMachineIsRefused) {
  const auto socket = ListenAddress::parse("192.0.2.1:0")->listen();
  ASSERT_FALSE(socket.ok());
  EXPECT_NE(socket.error().message.find("192.0.2.1"), std::string::npos) << socket.error().message;
}

}  // namespace
}  // namespace foreload
