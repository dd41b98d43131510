// Torchvision's definitions. Batch norms count two numbers per channel, as trained ones do; pooling and activation
// functions have no parameters and next to no work, and belong to the layer before them.
#include "lab/layers.h"

#include <fmt/format.h>

#include <array>

namespace foreload {
namespace {

// A picture's way through a network.
class Builder {
 public:
  explicit Builder(std::string name) : network_{std::move(name), {}} {}

  void begin(const std::string& layer) { network_.layers.push_back({layer, 0, 0, 0}); }
  void convolve(std::uint64_t out, std::uint64_t kernel, std::uint64_t stride, std::uint64_t padding,
                bool norm = false) {
    side_ = (side_ + 2 * padding - kernel) / stride + 1;
    count(channels_ * kernel * kernel, out, norm ? 2 * out : out);
    channels_ = out;
    leave(channels_ * side_ * side_);
  }
  void pool(std::uint64_t kernel, std::uint64_t stride, std::uint64_t padding = 0) {
    side_ = (side_ + 2 * padding - kernel) / stride + 1;
    leave(channels_ * side_ * side_);
  }
  void pool_to(std::uint64_t side) {
    side_ = side;
    leave(channels_ * side_ * side_);
  }
  void dense(std::uint64_t out) {
    const std::uint64_t in = channels_ * side_ * side_;
    side_ = 1;
    count(in, out, out);
    channels_ = out;
    leave(out);
  }
  // 1×1, 3×3, 1×1, beside the way straight through, which is projected where the shape changes.
  void bottleneck(std::uint64_t width, std::uint64_t stride) {
    const std::uint64_t in = channels_;
    const std::uint64_t before = side_;
    convolve(width, 1, 1, 0, true);
    convolve(width, 3, stride, 1, true);
    convolve(4 * width, 1, 1, 0, true);
    if (in == 4 * width && before == side_) return;
    Layer& layer = network_.layers.back();
    layer.parameters += in * 4 * width + 2 * 4 * width;
    layer.flops += 2.0 * static_cast<double>(in * 4 * width * side_ * side_);
  }
  Network done() { return std::move(network_); }

 private:
  // `inputs` of each of `out` channels; `extra`: biases, or what a norm has.
  void count(std::uint64_t inputs, std::uint64_t out, std::uint64_t extra) {
    Layer& layer = network_.layers.back();
    layer.parameters += inputs * out + extra;
    layer.flops += 2.0 * static_cast<double>(inputs * out * side_ * side_);
  }
  void leave(std::uint64_t numbers) { network_.layers.back().activations = numbers; }

  Network network_;
  std::uint64_t channels_ = 3;
  std::uint64_t side_ = 224;
};

void classify(Builder& builder) {
  for (const std::uint64_t out : {4096, 4096, 1000}) {
    builder.begin(fmt::format("dense {}", out));
    builder.dense(out);
  }
}

Network alexnet() {
  Builder builder("alexnet");
  builder.begin("conv1");
  builder.convolve(64, 11, 4, 2);
  builder.pool(3, 2);
  builder.begin("conv2");
  builder.convolve(192, 5, 1, 2);
  builder.pool(3, 2);
  builder.begin("conv3");
  builder.convolve(384, 3, 1, 1);
  builder.begin("conv4");
  builder.convolve(256, 3, 1, 1);
  builder.begin("conv5");
  builder.convolve(256, 3, 1, 1);
  builder.pool(3, 2);
  classify(builder);
  return builder.done();
}

Network vgg19() {
  Builder builder("vgg19");
  struct Stage {
    std::uint64_t convolutions;
    std::uint64_t channels;
  };
  constexpr std::array<Stage, 5> kStages{{{2, 64}, {2, 128}, {4, 256}, {4, 512}, {4, 512}}};
  for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
    for (std::uint64_t i = 0; i < kStages[stage].convolutions; ++i) {
      builder.begin(fmt::format("conv{}_{}", stage + 1, i + 1));
      builder.convolve(kStages[stage].channels, 3, 1, 1);
    }
    builder.pool(2, 2);
  }
  classify(builder);
  return builder.done();
}

Network resnet(std::string name, const std::array<std::uint64_t, 4>& blocks) {
  Builder builder(std::move(name));
  builder.begin("conv1");
  builder.convolve(64, 7, 2, 3, true);
  builder.pool(3, 2, 1);
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    for (std::uint64_t block = 0; block < blocks[stage]; ++block) {
      builder.begin(fmt::format("block{}_{}", stage + 1, block + 1));
      builder.bottleneck(std::uint64_t{64} << stage, stage > 0 && block == 0 ? 2 : 1);
    }
  }
  builder.begin("dense 1000");
  builder.pool_to(1);
  builder.dense(1000);
  return builder.done();
}

}  // namespace

std::uint64_t Network::parameters() const {
  std::uint64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.parameters;
  return sum;
}

double Network::flops() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.flops;
  return sum;
}

Result<Network> find_network(std::string_view name) {
  if (name == "alexnet") return alexnet();
  if (name == "vgg19") return vgg19();
  if (name == "resnet50") return resnet("resnet50", {3, 4, 6, 3});
  if (name == "resnet152") return resnet("resnet152", {3, 8, 36, 3});
  return Error{Code::kNotFound,
               fmt::format("there is no network \"{}\": alexnet, vgg19, resnet50, resnet152", name.substr(0, 40))};
}

}  // namespace foreload
