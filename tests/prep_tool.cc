// prep_tool: runs parts of prep from the command line, for tests that compare with other programs.
//
//   prep_tool run FILE CHAIN DTYPE LAYOUT SEED EPOCH POSITION   the tensor, raw, to stdout
//   prep_tool box WIDTH HEIGHT CHAIN SEED EPOCH POSITION        the box that the chain's first op cuts: "x y width
//   height" prep_tool decode FILE [X Y WIDTH HEIGHT]                    the pixels as PPM to stdout prep_tool rate
//   ROUNDS FILE...                               images per CPU second: decode alone, whole chain
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "prep/chain.h"
#include "prep/crop.h"
#include "prep/image.h"
#include "prep/op.h"

namespace foreload {
namespace {

using Words = std::vector<std::string>;

Result<std::vector<std::byte>> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Code::kNotFound, "can not open " + path};
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return std::vector<std::byte>(data, data + text.size());
}

Status write_out(const void* data, std::size_t size) {
  if (std::fwrite(data, 1, size, stdout) == size) return {};
  return Error{Code::kIo, "can not write to stdout"};
}

PrepKey key_of(const Words& words, std::size_t first) {
  return {std::stoull(words[first]), std::stoull(words[first + 1]), std::stoull(words[first + 2])};
}

Result<ChainOptions> options_of(const std::string& chain, const std::string& dtype, const std::string& layout) {
  ChainOptions options;
  FORELOAD_ASSIGN(options.transforms, parse_chain(chain));
  options.dtype = dtype == "u8" ? DType::kU8 : dtype == "f16" ? DType::kF16 : DType::kF32;
  options.layout = layout == "nhwc" ? Layout::kNhwc : Layout::kNchw;
  return options;
}

Status run(const Words& words) {
  if (words.size() != 7) return Error{Code::kInvalid, "run FILE CHAIN DTYPE LAYOUT SEED EPOCH POSITION"};
  FORELOAD_ASSIGN(const auto sample, read_file(words[0]));
  FORELOAD_ASSIGN(const auto options, options_of(words[1], words[2], words[3]));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile(options));
  ChainRunner runner(chain);
  FORELOAD_TRY(runner.begin(sample, key_of(words, 4)));
  std::vector<std::byte> out(chain.output().bytes());
  FORELOAD_TRY(runner.finish(out));
  return write_out(out.data(), out.size());
}

Status box(const Words& words) {
  if (words.size() != 6) return Error{Code::kInvalid, "box WIDTH HEIGHT CHAIN SEED EPOCH POSITION"};
  FORELOAD_ASSIGN(const auto transforms, parse_chain(words[2]));
  FORELOAD_ASSIGN(const auto op, make_op(transforms[0]));
  const PrepKey key = key_of(words, 3);
  KeyedRandom random(key.seed, key.epoch, key.position, 0);
  Geometry geometry;
  geometry.begin({static_cast<std::uint32_t>(std::stoul(words[0])), static_cast<std::uint32_t>(std::stoul(words[1]))});
  FORELOAD_TRY(op->place(geometry, random));
  const View& view = geometry.steps().empty() ? geometry.last_view() : geometry.steps()[0].view;
  fmt::print("{} {} {} {}\n", view.x.origin, view.y.origin, view.x.size, view.y.size);
  return {};
}

// Decodes a box and gives each row to `use`.
template <typename Use>
Status decode_box(ImageDecoder& decoder, const Box& box, std::vector<std::uint8_t>& scratch, Use use) {
  scratch.resize(std::max<std::size_t>(scratch.size(), decoder.memory(box).scratch));
  FORELOAD_TRY(decoder.start(box, scratch));
  for (std::uint32_t row = 0; row < box.height; ++row) {
    FORELOAD_ASSIGN(const std::uint8_t* pixels, decoder.next_row());
    use(pixels);
  }
  decoder.close();
  return {};
}

Status decode(const Words& words) {
  if (words.size() != 1 && words.size() != 5) return Error{Code::kInvalid, "decode FILE [X Y WIDTH HEIGHT]"};
  FORELOAD_ASSIGN(const auto sample, read_file(words[0]));
  FORELOAD_ASSIGN(const ImageFormat* format, image_format_of(sample));
  const auto decoder = format->make();
  FORELOAD_ASSIGN(const Dimensions size, decoder->open(sample, Limits{}));
  Box part{0, 0, size.width, size.height};
  const auto number = [&](std::size_t i) { return static_cast<std::uint32_t>(std::stoul(words[i])); };
  if (words.size() == 5) part = {number(1), number(2), number(3), number(4)};
  std::string ppm = fmt::format("P6\n{} {}\n255\n", part.width, part.height);
  std::vector<std::uint8_t> scratch;
  FORELOAD_TRY(decode_box(*decoder, part, scratch, [&](const std::uint8_t* pixels) {
    for (std::uint32_t i = 0; i < part.width; ++i) ppm.append(reinterpret_cast<const char*>(pixels) + 4 * i, 3);
  }));
  return write_out(ppm.data(), ppm.size());
}

// Of this process: what others run on the machine does not count.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

constexpr const char* kTrainingChain = "random_resized_crop(224), random_flip, normalize";

Status decode_all(const std::vector<std::vector<std::byte>>& samples, std::uint64_t round) {
  const CropRange range = CropRange::make(0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0);
  const auto decoder = image_formats()[0].make();
  std::vector<std::uint8_t> scratch;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    FORELOAD_ASSIGN(const Dimensions size, decoder->open(samples[i], Limits{}));
    KeyedRandom random(7, round, i, 0);
    FORELOAD_TRY(decode_box(*decoder, draw_crop(range, size, random), scratch, [](const std::uint8_t*) {}));
  }
  return {};
}

Status run_all(const Chain& chain, const std::vector<std::vector<std::byte>>& samples, std::uint64_t round) {
  ChainRunner runner(chain);
  std::vector<std::byte> out(chain.output().bytes());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    FORELOAD_TRY(runner.begin(samples[i], {7, round, i}));
    FORELOAD_TRY(runner.finish(out));
  }
  return {};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Status rate(const Words& words) {
  if (words.size() < 2) return Error{Code::kInvalid, "rate ROUNDS FILE..."};
  std::vector<std::vector<std::byte>> samples;
  for (std::size_t i = 1; i < words.size(); ++i) {
    FORELOAD_ASSIGN(auto sample, read_file(words[i]));
    samples.push_back(std::move(sample));
  }
  FORELOAD_ASSIGN(const auto options, options_of(kTrainingChain, "f32", "nchw"));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile(options));
  std::vector<double> decode_seconds, chain_seconds, ratios;
  for (std::uint64_t round = 0; round < std::stoull(words[0]); ++round) {
    double start = cpu_seconds();
    FORELOAD_TRY(decode_all(samples, round));
    decode_seconds.push_back(cpu_seconds() - start);
    start = cpu_seconds();
    FORELOAD_TRY(run_all(chain, samples, round));
    chain_seconds.push_back(cpu_seconds() - start);
    ratios.push_back(chain_seconds.back() / decode_seconds.back());
  }
  const auto count = static_cast<double>(samples.size());
  fmt::print("region decode alone {:.0f} images per CPU second, {} {:.0f}, time ratio {:.3f} (medians)\n",
             count / median(decode_seconds), kTrainingChain, count / median(chain_seconds), median(ratios));
  return {};
}

Status dispatch(const std::string& command, const Words& words) {
  if (command == "run") return run(words);
  if (command == "box") return box(words);
  if (command == "decode") return decode(words);
  if (command == "rate") return rate(words);
  return Error{Code::kInvalid, "usage: prep_tool run|box|decode|rate ..."};
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto status =
      foreload::dispatch(words.empty() ? "" : words[0], {words.begin() + (words.empty() ? 0 : 1), words.end()});
  if (status) return 0;
  std::fprintf(stderr, "prep_tool: %s\n", status.error().message.c_str());
  return 1;
}
