#include "probe/prep_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "prep/crop.h"
#include "prep/image.h"
#include "prep/jpeg.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_splice.h"
#include "probe/synthetic.h"

namespace foreload {

namespace {

using Picture = std::vector<std::byte>;

constexpr std::uint64_t kSeed = 7;
constexpr Bytes kLargestFile = 64_MiB;

Result<std::vector<std::string>> files_below(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> paths;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, failed);
       !failed && at != std::filesystem::recursive_directory_iterator(); at.increment(failed)) {
    if (at->is_regular_file(failed)) paths.push_back(at->path().string());
  }
  if (failed) return Error{Code::kNotFound, fmt::format("cannot list {}: {}", folder, failed.message())};
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<std::vector<Picture>> photographs(const std::string& folder, unsigned most) {
  FORELOAD_ASSIGN(const auto paths, files_below(folder));
  std::vector<Picture> pictures;
  for (const std::string& path : paths) {
    const auto text = read_whole_file(path, kLargestFile);
    if (!text) continue;
    const auto bytes = std::as_bytes(std::span(*text));
    if (is_jpeg(bytes) && jpeg_dimensions(bytes)) pictures.emplace_back(bytes.begin(), bytes.end());
  }
  if (pictures.empty()) return Error{Code::kNotFound, fmt::format("there is no JPEG below {}", folder)};
  if (pictures.size() <= most) return pictures;
  std::vector<Picture> picked;
  for (std::size_t i = 0; i < most; ++i) picked.push_back(std::move(pictures[i * pictures.size() / most]));
  return picked;
}

// Bytes of the small JPEG that a crop needs, against the file.
Result<double> share_touched(const Picture& jpeg, std::span<const std::uint32_t> rows, const Box& crop) {
  const auto layout = parse_jpeg_layout(jpeg);
  if (!layout || rows.empty()) return 1.0;
  const JpegSplice splice = plan_jpeg_splice(*layout, crop, 8);
  if (covers_most(*layout, splice)) return 1.0;
  Picture small(jpeg_splice_bytes(*layout, splice, rows));
  FORELOAD_ASSIGN(const std::size_t size, write_jpeg_splice(jpeg, *layout, splice, rows, small));
  return static_cast<double>(size) / static_cast<double>(jpeg.size());
}

}  // namespace

Result<PrepPictures> PrepPictures::load(const std::string& photos, unsigned most) {
  PrepPictures pictures;
  if (photos.empty()) {
    for (unsigned i = 0; i < most; ++i) pictures.raw.push_back(synthetic_jpeg(1, i));
  } else {
    FORELOAD_ASSIGN(pictures.raw, photographs(photos, most));
  }
  JpegRewriter rewriter;
  for (const Picture& jpeg : pictures.raw) {
    FORELOAD_ASSIGN(const Dimensions size, jpeg_dimensions(jpeg));
    pictures.sizes.push_back(size);
    FORELOAD_TRY(pictures.add_converted(jpeg, rewriter));
  }
  return pictures;
}

Status PrepPictures::add_converted(const Picture& jpeg, JpegRewriter& rewriter) {
  const auto rewritten = rewriter.rewrite(jpeg, Limits{});
  converted.push_back(rewritten ? Picture(rewritten->begin(), rewritten->end()) : jpeg);
  rows.emplace_back();
  intervals.push_back(0);
  if (!rewritten) return {};
  FORELOAD_ASSIGN(const JpegLayout layout, parse_jpeg_layout(converted.back()));
  intervals.back() = layout.interval;
  return jpeg_row_offsets(converted.back(), layout, rows.back());
}

double PrepPictures::mean_converted_size() const {
  double sum = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    sum += static_cast<double>(converted[i].size()) / static_cast<double>(raw[i].size());
  }
  return sum / static_cast<double>(raw.size());
}

Result<double> PrepPictures::bytes_touched(const std::vector<Box>& crops) const {
  double sum = 0;
  for (std::size_t i = 0; i < crops.size(); ++i) {
    FORELOAD_ASSIGN(const double share, share_touched(converted[i], rows[i], crops[i]));
    sum += share;
  }
  return sum / static_cast<double>(crops.size());
}

PrepKey prep_key(unsigned round, std::size_t picture) {
  return {.seed = kSeed, .epoch = round, .position = picture};
}

std::vector<Box> crops_of_round(const PrepPictures& pictures, unsigned round) {
  const CropRange range = CropRange::make(0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0);
  std::vector<Box> crops;
  for (std::size_t i = 0; i < pictures.sizes.size(); ++i) {
    const PrepKey key = prep_key(round, i);
    KeyedRandom random(key.seed, key.epoch, key.position, 0);
    crops.push_back(draw_crop(range, pictures.sizes[i], random));
  }
  return crops;
}

}  // namespace foreload
