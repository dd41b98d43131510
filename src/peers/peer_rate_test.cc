#include "peers/peer_rate.h"

#include <gtest/gtest.h>

#include "peers/grpc_testing.h"
#include "peers/noise_shelf.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<GrpcServer> serve_noise(PeerShelf& shelf, const std::optional<PeerCredentials>& credentials) {
  auto server = GrpcServer::listen({.credentials = credentials}, shelf, welcome());
  EXPECT_TRUE(server) << server.error().message;
  return std::move(*server);
}

TEST(PeerRateTest, NoiseComesFromAllOfThemWithTheirCredentials) {
  const auto credentials = job_credentials()[0];
  TestShelf first;
  TestShelf second;
  NoiseShelf noise(first);
  NoiseShelf more(second);
  const auto one = serve_noise(noise, credentials);
  const auto two = serve_noise(more, credentials);
  auto rate = PeerRate::open({"", one->address(), two->address()}, credentials);
  ASSERT_TRUE(rate) << rate.error().message;
  for (const Bytes length : {Bytes{1}, Bytes{110'000}, 2 * kLongestNoise}) {
    const auto found = rate->measure(length, 50ms);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_GT(*found, 0);
  }
}

TEST(PeerRateTest, WhoDoesNotAnswerIsNamed) {
  EXPECT_EQ(PeerRate::open({""}, {}).error().code, Code::kInvalid);
  TestShelf shelf;
  auto server = serve_noise(shelf, {});  // of an agent that has no noise
  const std::string address = server->address();
  shelf.know(false);
  for (int round = 0; round < 2; ++round) {
    auto rate = PeerRate::open({address}, {});
    ASSERT_TRUE(rate) << rate.error().message;
    const auto found = rate->measure(1000, 50ms);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::kIo);
    EXPECT_NE(found.error().message.find(address), std::string::npos) << found.error().message;
    server.reset();  // and of none at all
  }
}

TEST(PeerRateTest, EverythingElseIsTheOthers) {
  TestShelf shelf;
  NoiseShelf noise(shelf);
  EXPECT_TRUE(noise.knows(kNoiseKey));
  EXPECT_TRUE(noise.knows(kTestKey));
  shelf.know(false);
  EXPECT_FALSE(noise.knows(kTestKey));
  EXPECT_EQ(noise.take(kNoiseKey, {.id = 7, .length = kLongestNoise + 1}).kind, PeerShelf::Taken::Kind::kAbsent);
  EXPECT_EQ(noise.take(kNoiseKey, {.id = 7, .length = 0}).kind, PeerShelf::Taken::Kind::kAbsent);
  const auto taken = noise.take(kNoiseKey, {.id = 7, .length = 1000});
  ASSERT_EQ(taken.kind, PeerShelf::Taken::Kind::kHere);
  EXPECT_EQ(taken.lease.bytes().size(), 1000u);
}

}  // namespace
}  // namespace foreload
