#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "lab/hetpipe.h"
#include "lab/layers.h"
#include "lab/parameter_server.h"

namespace foreload {
namespace {

Network network(const char* name) {
  auto found = find_network(name);
  EXPECT_TRUE(found.ok());
  return *std::move(found);
}

// What torchvision counts for the same definitions.
TEST(LayersTest, ParametersAreThoseOfTheDefinitions) {
  EXPECT_EQ(network("alexnet").parameters(), 61'100'840u);
  EXPECT_EQ(network("vgg19").parameters(), 143'667'240u);
  EXPECT_EQ(network("resnet50").parameters(), 25'557'032u);
  EXPECT_EQ(network("resnet152").parameters(), 60'192'808u);
  EXPECT_FALSE(find_network("lenet").ok());
}

// Multiplications with their additions: 0.71, 19.6, 4.09 and 11.5 billion.
TEST(LayersTest, WorkIsThatOfTheDefinitions) {
  EXPECT_NEAR(network("alexnet").flops() / 2e9, 0.714, 0.005);
  EXPECT_NEAR(network("vgg19").flops() / 2e9, 19.63, 0.05);
  EXPECT_NEAR(network("resnet50").flops() / 2e9, 4.09, 0.03);
  EXPECT_NEAR(network("resnet152").flops() / 2e9, 11.51, 0.06);
}

TEST(ParameterServerTest, ThePlacementIsTheBestOfAll) {
  const Network small = network("alexnet");
  for (const std::uint64_t batch : {1, 16, 128}) {
    for (const double server : {1e10, 1e12, 1e14}) {
      const ServerSetup setup{.workers = 4, .batch = batch, .server_flops = server};
      double best = std::numeric_limits<double>::infinity();
      for (unsigned bits = 0; bits < 1u << small.layers.size(); ++bits) {
        std::vector<bool> sides;
        for (std::size_t i = 0; i < small.layers.size(); ++i) sides.push_back((bits >> i & 1) != 0);
        best = std::min(best, cost_of_placement(small, setup, sides).step());
      }
      EXPECT_NEAR(place_layers(small, setup).step(), best, best * 1e-12) << batch << ", " << server;
    }
  }
}

// The dense layers have most parameters and few activations: they belong to a fast server.
TEST(ParameterServerTest, LargeLayersGoToAFastServerAndStayFromASlowOne) {
  const Network vgg = network("vgg19");
  const LayerPlacement fast = place_layers(vgg, {.workers = 4, .batch = 32, .server_flops = 2e12});
  EXPECT_TRUE(fast.on_server[vgg.layers.size() - 3]);
  EXPECT_FALSE(fast.on_server[0]);
  const LayerPlacement slow = place_layers(vgg, {.workers = 4, .batch = 32, .server_flops = 1e9});
  EXPECT_EQ(std::ranges::count(slow.on_server, true), 0);
  EXPECT_LT(fast.step(), cost_of_placement(vgg, {.workers = 4, .batch = 32, .server_flops = 2e12},
                                           std::vector<bool>(vgg.layers.size()))
                             .step());
}

// All contiguous cuts, by brute force.
double best_cut(const Network& net, const std::vector<Gpu>& gpus, const PipelineSetup& setup) {
  std::vector<std::size_t> order{0, 1, 2};
  double best = std::numeric_limits<double>::infinity();
  do {
    for (std::size_t a = 1; a < net.layers.size() - 1; ++a) {
      for (std::size_t b = a + 1; b < net.layers.size(); ++b) {
        const std::array<std::size_t, 4> begins{0, a, b, net.layers.size()};
        double slowest = 0;
        for (std::size_t stage = 0; stage < 3; ++stage) {
          double flops = 0;
          for (std::size_t i = begins[stage]; i < begins[stage + 1]; ++i) flops += net.layers[i].flops;
          const Gpu& gpu = gpus[order[stage]];
          const auto batch = static_cast<double>(setup.batch);
          double seconds = 3 * flops * batch / gpu.flops;
          if (stage < 2) {
            const auto sent = static_cast<double>(net.layers[begins[stage + 1] - 1].activation_bytes());
            seconds = std::max(seconds, 2 * sent * batch / setup.link);
          }
          if (stage_bytes(net, begins[stage], begins[stage + 1], setup.batch, 3 - stage) > gpu.memory)
            seconds = std::numeric_limits<double>::infinity();
          slowest = std::max(slowest, seconds);
        }
        best = std::min(best, slowest);
      }
    }
  } while (std::ranges::next_permutation(order).found);
  return best;
}

TEST(HetPipeTest, ThePartitionIsTheBestOfAll) {
  for (const char* name : {"alexnet", "vgg19", "resnet50"}) {
    const Network net = network(name);
    for (const Bytes memory : {Bytes{3'000'000'000}, Bytes{8'000'000'000}, Bytes{24'000'000'000}}) {
      const std::vector<Gpu> gpus{{"a", 15e12, memory}, {"b", 6e12, 24'000'000'000}, {"c", 5e12, memory}};
      const PipelineSetup setup{.batch = 16};
      const auto made = partition(net, gpus, setup);
      const double best = best_cut(net, gpus, setup);
      ASSERT_EQ(made.ok(), best < std::numeric_limits<double>::infinity()) << name;
      if (made.ok()) {
        EXPECT_NEAR(made->slowest, best, best * 1e-12) << name << ", " << memory;
      }
    }
  }
}

TEST(HetPipeTest, WhatDoesNotFitIsSaidInNumbers) {
  const auto made = partition(network("resnet152"), std::vector<Gpu>{{"small", 1e12, 100'000'000}}, {.batch = 64});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kNoMemory);
}

TEST(HetPipeTest, EqualWorkersNeverWait) {
  const std::vector<double> paces(4, 0.01);
  const Waves waves = play_waves(paces, {.minibatches = 5, .distance = 0}, 100);
  EXPECT_NEAR(waves.minibatches_per_s, 400, 1);
  for (const double waited : waves.waited) EXPECT_NEAR(waited, 0, 1e-6);
}

TEST(HetPipeTest, NobodyIsFartherAheadThanAllowed) {
  const std::vector<double> paces{0.01, 0.02, 0.013};
  for (const std::uint64_t distance : {0, 1, 4, 32}) {
    const Waves waves = play_waves(paces, {.minibatches = 4, .distance = distance}, 200);
    EXPECT_LE(waves.farthest, distance + 1);
    EXPECT_EQ(waves.waited[1], 0);
    // In the long run all go as fast as the slowest.
    EXPECT_NEAR(waves.minibatches_per_s, 3 / 0.02, 3 / 0.02 * (0.01 + static_cast<double>(distance) * 0.002));
  }
}

}  // namespace
}  // namespace foreload
