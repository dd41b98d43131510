// Broken images and bombs (R10 and R11): whatever the bytes, the answer is a tensor or a reason, soon, within
// the memory that was announced.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "prep/chain.h"
#include "prep/jpeg_samples.h"
#include "prep/png_samples.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

using Sample = std::vector<std::byte>;
// Time of this thread alone: what other programs do must not decide a test.
double cpu_seconds() {
  timespec time{};
  EXPECT_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Chain chain_of(std::vector<Transform> transforms) {
  return std::move(Chain::compile({.transforms = std::move(transforms)})).value();
}

Status run(ChainRunner& runner, const Sample& sample, const PrepKey& key, std::span<std::byte> out) {
  FORELOAD_TRY(runner.begin(sample, key));
  return runner.finish(out);
}

void expect_reason(const Status& status) {
  if (status) return;
  EXPECT_EQ(status.error().code, Code::kBadSample);
  EXPECT_FALSE(status.error().message.empty());
}

// --- R10 ---

std::vector<Sample> good_samples() {
  std::vector<Sample> samples;
  for (const auto& spec : jpeg_kinds()) samples.push_back(make_jpeg(spec));
  for (const auto& spec : png_kinds()) samples.push_back(make_png(spec));
  for (const bool progressive : {false, true}) {
    samples.push_back(
        make_jpeg({.width = 500, .height = 375, .sampling = {2, 2, 1, 1, 1, 1}, .progressive = progressive}));
  }
  return samples;
}

std::size_t place_in(const Sample& sample, KeyedRandom& random) {
  return static_cast<std::size_t>(random.below(sample.size()));
}

void flip_bytes(Sample& sample, KeyedRandom& random) {
  const auto count = 1 + random.below(8);
  // Half of them in the header, where they do most harm.
  const std::size_t reach = random.below(2) == 0 ? sample.size() : std::min<std::size_t>(sample.size(), 200);
  for (std::uint64_t i = 0; i < count; ++i) sample[random.below(reach)] = static_cast<std::byte>(random.next_u32());
}

void swap_parts(Sample& sample, KeyedRandom& random) {
  std::size_t cuts[3] = {place_in(sample, random), place_in(sample, random), place_in(sample, random)};
  std::sort(std::begin(cuts), std::end(cuts));
  const auto at = [&](int i) { return sample.begin() + static_cast<std::ptrdiff_t>(cuts[i]); };
  std::rotate(at(0), at(1), at(2));
}

void shuffle_markers(Sample& sample, KeyedRandom& random) {
  std::vector<std::size_t> markers;
  for (std::size_t i = 2; i + 1 < sample.size(); ++i) {
    if (sample[i] == std::byte{0xff} && sample[i + 1] > std::byte{0xbf}) markers.push_back(i + 1);
  }
  if (markers.empty()) return flip_bytes(sample, random);
  const auto pick = [&] { return markers[random.below(markers.size())]; };
  std::swap(sample[pick()], sample[pick()]);
  if (random.below(2) == 0) sample[pick()] = static_cast<std::byte>(0xc0 + random.below(64));
}

void insert_bytes(Sample& sample, KeyedRandom& random) {
  const Sample part(1 + random.below(40), static_cast<std::byte>(random.below(2) * 0xff));
  sample.insert(sample.begin() + static_cast<std::ptrdiff_t>(place_in(sample, random)), part.begin(), part.end());
}

Sample mutated(Sample sample, KeyedRandom& random) {
  switch (random.below(6)) {
    case 0:
      sample.resize(place_in(sample, random));
      break;
    case 1:
      swap_parts(sample, random);
      break;
    case 2:
      insert_bytes(sample, random);
      break;
    case 3:
      shuffle_markers(sample, random);
      break;
    default:
      flip_bytes(sample, random);
  }
  return sample;
}

TEST(HostileTest, BrokenImagesGiveATensorOrAReasonWithinASecond) {
  constexpr std::uint64_t kSeed = 8;
  const auto samples = good_samples();
  const Chain chains[] = {chain_of({random_resized_crop(24), random_flip(), normalize(kImageNet)}),
                          chain_of({resize(40), center_crop(32)})};
  ChainRunner runners[] = {ChainRunner(chains[0]), ChainRunner(chains[1])};
  std::vector<std::byte> out[2], expected[2];
  for (int i = 0; i < 2; ++i) {
    out[i].resize(chains[i].output().bytes());
    expected[i].resize(chains[i].output().bytes());
    ASSERT_TRUE(run(runners[i], samples[0], {}, expected[i]));
  }
  unsigned refused = 0;
  const unsigned amount = test_amount(20'000);
  for (unsigned i = 0; i < amount; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", mutation " << i);
    KeyedRandom random(kSeed, 0, i, 0);
    const Sample sample = mutated(samples[i % samples.size()], random);
    const std::size_t which = random.below(2);
    const double start = cpu_seconds();
    const Status status = run(runners[which], sample, {kSeed, 0, i}, out[which]);
    EXPECT_LT(cpu_seconds() - start, 1.0);
    expect_reason(status);
    refused += !status;
    if (i % 50 != 0) continue;
    ASSERT_TRUE(run(runners[which], samples[0], {}, out[which])) << "a good sample after a broken one";
    ASSERT_EQ(out[which], expected[which]);
  }
  // Both ways out must really be taken.
  EXPECT_GT(refused, amount / 5);
  EXPECT_LT(refused, amount - amount / 10);
}

TEST(HostileTest, WrongFormatsAreRefused) {
  const Chain chain = chain_of({center_crop(8)});
  ChainRunner runner(chain);
  for (const char* text :
       {"", "\xff", "\xff\xd8", "\xff\xd8\xff", "\x89PNG\r\n\x1a\n", "GIF89a", "RIFF....WEBPVP8 ", "\x93NUMPY"}) {
    const auto* data = reinterpret_cast<const std::byte*>(text);
    const auto bytes = runner.begin({data, std::strlen(text)}, {});
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().code, Code::kBadSample);
  }
}

// Without the segments of a marker.
Sample without(const Sample& jpeg, unsigned code) {
  Sample kept(jpeg.begin(), jpeg.begin() + 2);
  for (std::size_t place = 2;;) {
    const auto marker = static_cast<unsigned>(jpeg[place + 1]);
    const std::size_t end =
        place + 2 + (static_cast<std::size_t>(jpeg[place + 2]) << 8 | static_cast<std::size_t>(jpeg[place + 3]));
    const auto at = [&](std::size_t i) { return jpeg.begin() + static_cast<std::ptrdiff_t>(i); };
    if (marker != code) kept.insert(kept.end(), at(place), marker == 0xda ? jpeg.end() : at(end));
    if (marker == 0xda) return kept;
    place = end;
  }
}

TEST(HostileTest, TablesOfTheFileBeforeAreNeverUsed) {
  const Chain chain = chain_of({resize(20, 20)});
  const Sample other = make_jpeg({.width = 90, .height = 70, .quality = 20, .progressive = true});
  const Sample whole = make_jpeg({.width = 90, .height = 70, .quality = 85});
  const Sample no_huffman = without(whole, 0xc4);  // as frames of Motion JPEG: the standard's tables are meant
  const Sample no_quantisation = without(whole, 0xdb);
  std::vector<std::byte> expected(chain.output().bytes());
  std::vector<std::byte> out(chain.output().bytes());
  ChainRunner fresh(chain);
  ASSERT_TRUE(run(fresh, whole, {}, expected));
  ChainRunner runner(chain);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(run(runner, other, {}, out));
    ASSERT_TRUE(run(runner, no_huffman, {}, out));
    EXPECT_EQ(out, expected);
    ASSERT_TRUE(run(runner, other, {}, out));
    EXPECT_FALSE(run(runner, no_quantisation, {}, out));
  }
}

// --- R11 ---

long peak_kilobytes() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

void expect_rejected(const Sample& sample, const std::string& reason) {
  const Chain chain = chain_of({random_resized_crop(224), random_flip(), normalize(kImageNet)});
  ChainRunner runner(chain);
  std::vector<std::byte> out(chain.output().bytes());
  const long before = peak_kilobytes();
  const double start = cpu_seconds();
  const Status status = run(runner, sample, {}, out);
  EXPECT_LT(cpu_seconds() - start, 0.05);
  EXPECT_LE(peak_kilobytes() - before, 64 << 10);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kBadSample);
  EXPECT_NE(status.error().message.find(reason), std::string::npos) << status.error().message;
}

std::ptrdiff_t find_marker(const Sample& sample, unsigned code) {
  const std::byte marker[] = {std::byte{0xff}, static_cast<std::byte>(code)};
  return std::search(sample.begin(), sample.end(), std::begin(marker), std::end(marker)) - sample.begin();
}

Sample with_jpeg_size(Sample jpeg, unsigned frame, unsigned width, unsigned height) {
  std::byte* at = jpeg.data() + find_marker(jpeg, frame) + 5;
  at[0] = static_cast<std::byte>(height >> 8);
  at[1] = static_cast<std::byte>(height);
  at[2] = static_cast<std::byte>(width >> 8);
  at[3] = static_cast<std::byte>(width);
  return jpeg;
}

TEST(HostileTest, TinyJpegOfHugeSizeIsRejected) {
  const Sample baseline = make_jpeg({.width = 8, .height = 8, .components = 1, .quality = 5});
  const Sample progressive = make_jpeg({.width = 8, .height = 8, .progressive = true});
  expect_rejected(with_jpeg_size(baseline, 0xc0, 65500, 65500), "more than the limit");
  expect_rejected(with_jpeg_size(progressive, 0xc2, 65500, 65500), "more than the limit");
  expect_rejected(with_jpeg_size(baseline, 0xc0, 30000, 26000), "more than the limit");
  // Within the limit of pixels, but without the data that they need.
  expect_rejected(with_jpeg_size(baseline, 0xc0, 16000, 16000), "can not hold 16000x16000");
  expect_rejected(with_jpeg_size(progressive, 0xc2, 16000, 16000), "can not hold 16000x16000");
}

// Copies the last scan of a progressive file until it has a thousand.
Sample with_many_scans(const Sample& jpeg) {
  const std::byte sos[] = {std::byte{0xff}, std::byte{0xda}};
  const auto last = std::find_end(jpeg.begin(), jpeg.end(), std::begin(sos), std::end(sos));
  const Sample scan(last, jpeg.end() - 2);
  Sample bomb(jpeg.begin(), jpeg.end() - 2);
  for (int i = 0; i < 1000; ++i) bomb.insert(bomb.end(), scan.begin(), scan.end());
  bomb.insert(bomb.end(), jpeg.end() - 2, jpeg.end());
  return bomb;
}

TEST(HostileTest, ThousandScansAreRejected) {
  expect_rejected(with_many_scans(make_jpeg({.width = 1024, .height = 1024, .progressive = true})), "scans");
  expect_rejected(with_many_scans(make_jpeg({.width = 16, .height = 16, .progressive = true})), "scans");
}

// libjpeg, when it waits for a restart marker, looks for scans inside a segment that is not one.
TEST(HostileTest, HiddenScansAreRejected) {
  const Sample jpeg = with_many_scans(make_jpeg({.width = 16, .height = 16, .progressive = true, .restart = 1}));
  const std::ptrdiff_t first_restart = find_marker(jpeg, 0xd0);
  ASSERT_LT(first_restart, static_cast<std::ptrdiff_t>(jpeg.size()));
  // A marker that does not exist, with a length that covers all that follows but the end of the image.
  const auto length = static_cast<std::size_t>(jpeg.end() - jpeg.begin() - first_restart);
  ASSERT_LT(length, 0x10000u);
  const Sample cover{std::byte{0xff}, std::byte{0x05}, static_cast<std::byte>(length >> 8),
                     static_cast<std::byte>(length)};
  Sample bomb(jpeg.begin(), jpeg.begin() + first_restart);
  bomb.insert(bomb.end(), cover.begin(), cover.end());
  bomb.insert(bomb.end(), jpeg.begin() + first_restart, jpeg.end());
  expect_rejected(bomb, "more scans than the limit");
}

TEST(HostileTest, HugePngIsRejected) {
  const auto with_size = [](Sample png, std::uint32_t width, std::uint32_t height) {
    for (int i = 0; i < 4; ++i) {
      png[16 + static_cast<std::size_t>(i)] = static_cast<std::byte>(width >> (24 - 8 * i));
      png[20 + static_cast<std::size_t>(i)] = static_cast<std::byte>(height >> (24 - 8 * i));
    }
    return png;
  };
  const Sample png = make_png({.width = 8, .height = 8, .interlaced = true});
  expect_rejected(with_size(png, 0x7fffffff, 0x7fffffff), "more than the limit");
  expect_rejected(with_size(png, 0xffffffff, 1), "more than the limit");
  expect_rejected(with_size(png, 16000, 16000), "can not hold 16000x16000");
}

}  // namespace
}  // namespace foreload
