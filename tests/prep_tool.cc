// prep_tool: runs parts of prep from the command line, for tests that compare with other programs.
//
//   run FILE CHAIN DTYPE LAYOUT SEED EPOCH POSITION    the tensor, raw, to stdout
//   box WIDTH HEIGHT CHAIN SEED EPOCH POSITION         the box that the chain's first op cuts: "x y width height"
//   plan WIDTH HEIGHT CHAIN SEED EPOCH POSITION        what the chain's ops drew: a line per stroke and erased box
//   decode FILE [X Y WIDTH HEIGHT]                     the pixels as PPM to stdout
//   rate ROUNDS FILE...                                images per CPU second: decode alone, whole chain
//   chain_rate ROUNDS CHAIN FILE...                    images per CPU second through CHAIN to u8
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
#include "prep/plan.h"

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
  const bool fast = words.size() == 8 && words[7] == "fast";
  if (words.size() != 7 && !fast) {
    return Error{Code::kInvalid, "run FILE CHAIN DTYPE LAYOUT SEED EPOCH POSITION [fast]"};
  }
  FORELOAD_ASSIGN(const auto sample, read_file(words[0]));
  FORELOAD_ASSIGN(ChainOptions options, options_of(words[1], words[2], words[3]));
  if (fast) options.decode = Decode::kFast;
  FORELOAD_ASSIGN(const Chain chain, Chain::compile(options));
  ChainRunner runner(chain);
  FORELOAD_TRY(runner.begin(sample, key_of(words, 4)));
  std::vector<std::byte> out(chain.output().bytes());
  FORELOAD_TRY(runner.finish(out));
  return write_out(out.data(), out.size());
}

// The plan of WIDTH HEIGHT CHAIN SEED EPOCH POSITION; of the first op alone if `first_only`.
Result<Plan> plan_of(const Words& words, bool first_only) {
  if (words.size() != 6) return Error{Code::kInvalid, "WIDTH HEIGHT CHAIN SEED EPOCH POSITION"};
  FORELOAD_ASSIGN(const auto transforms, parse_chain(words[2]));
  const PrepKey key = key_of(words, 3);
  Plan plan;
  plan.begin({static_cast<std::uint32_t>(std::stoul(words[0])), static_cast<std::uint32_t>(std::stoul(words[1]))});
  const std::size_t ops = first_only ? 1 : transforms.size();
  for (std::uint32_t i = 0; i < ops; ++i) {
    FORELOAD_ASSIGN(const auto op, make_op(transforms[i]));
    KeyedRandom random(key.seed, key.epoch, key.position, i);
    FORELOAD_TRY(op->place(plan, random));
  }
  return plan;
}

Status box(const Words& words) {
  FORELOAD_ASSIGN(Plan plan, plan_of(words, true));
  const Geometry& geometry = plan.geometry();
  const View& view = geometry.steps().empty() ? geometry.last_view() : geometry.steps()[0].view;
  fmt::print("{} {} {} {}\n", view.x.origin, view.y.origin, view.x.size, view.y.size);
  return {};
}

struct StrokeText {
  std::string operator()(const Enhance& s) const {
    constexpr const char* kNames[] = {"brightness", "contrast", "saturation", "sharpness"};
    return fmt::format("{} {}", kNames[static_cast<int>(s.kind)], s.factor);
  }
  std::string operator()(const ShiftHue& s) const { return fmt::format("hue {}", s.turn); }
  std::string operator()(const MakeGray&) const { return "gray"; }
  std::string operator()(const Posterize& s) const { return fmt::format("posterize {}", s.bits); }
  std::string operator()(const Solarize& s) const { return fmt::format("solarize {}", s.threshold); }
  std::string operator()(const AutoContrast&) const { return "autocontrast"; }
  std::string operator()(const Equalize&) const { return "equalize"; }
  std::string operator()(const Blur& s) const { return fmt::format("blur {} {} {}", s.width, s.height, s.sigma); }
  std::string operator()(const Rotate& s) const { return fmt::format("rotate {}", s.degrees); }
  std::string operator()(const Affine& s) const {
    return fmt::format("affine {} {} {} {}", s.degrees, fmt::join(s.translate, " "), s.scale, fmt::join(s.shear, " "));
  }
  std::string operator()(const Shear& s) const { return fmt::format("shear {} {}", s.x, s.y); }
  std::string operator()(const Border&) const { return "border"; }
};

Status print_plan(const Words& words) {
  FORELOAD_ASSIGN(Plan plan, plan_of(words, false));
  plan.settle();
  for (const Stage& stage : plan.stages()) {
    for (const Stroke& stroke : stage.strokes) fmt::print("{}\n", std::visit(StrokeText{}, stroke));
  }
  for (const Erasure& erasure : plan.erasures()) {
    fmt::print("erase {} {} {} {}\n", erasure.box.x, erasure.box.y, erasure.box.width, erasure.box.height);
  }
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

Result<std::vector<std::vector<std::byte>>> read_files(const Words& words, std::size_t first) {
  std::vector<std::vector<std::byte>> samples;
  for (std::size_t i = first; i < words.size(); ++i) {
    FORELOAD_ASSIGN(auto sample, read_file(words[i]));
    samples.push_back(std::move(sample));
  }
  return samples;
}

Status chain_rate(const Words& words) {
  if (words.size() < 3) return Error{Code::kInvalid, "chain_rate ROUNDS CHAIN FILE..."};
  FORELOAD_ASSIGN(const auto samples, read_files(words, 2));
  FORELOAD_ASSIGN(const auto options, options_of(words[1], "u8", "nhwc"));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile(options));
  std::vector<double> seconds;
  for (std::uint64_t round = 0; round < std::stoull(words[0]); ++round) {
    const double start = cpu_seconds();
    FORELOAD_TRY(run_all(chain, samples, round));
    seconds.push_back(cpu_seconds() - start);
  }
  fmt::print("{:.1f} images per CPU second (median)\n", static_cast<double>(samples.size()) / median(seconds));
  return {};
}

Status rate(const Words& words) {
  if (words.size() < 2) return Error{Code::kInvalid, "rate ROUNDS FILE..."};
  FORELOAD_ASSIGN(const auto samples, read_files(words, 1));
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
  if (command == "plan") return print_plan(words);
  if (command == "decode") return decode(words);
  if (command == "rate") return rate(words);
  if (command == "chain_rate") return chain_rate(words);
  return Error{Code::kInvalid, "usage: prep_tool run|box|plan|decode|rate|chain_rate ..."};
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
