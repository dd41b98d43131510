// PrepPictures: the JPEGs that prep is measured with, raw and converted, in memory, and the crops of each round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "prep/chain.h"
#include "prep/geometry.h"
#include "prep/jpeg_rewrite.h"

namespace foreload {

struct PrepPictures {
  std::vector<std::vector<std::byte>> raw;
  std::vector<std::vector<std::byte>> converted;  // as they are where they can not be converted
  std::vector<Dimensions> sizes;
  // Of the converted ones, as a record index has them: where the rows of MCUs begin, and the MCUs between two restart
  // markers. Empty and 0 where nothing could be converted.
  std::vector<std::vector<std::uint32_t>> rows;
  std::vector<std::uint32_t> intervals;

  // At most `most` JPEGs of a folder, evenly picked; synthetic ones when `photos` is empty.
  static Result<PrepPictures> load(const std::string& photos, unsigned most);

  double mean_converted_size() const;  // against raw
  // The mean share of a converted file that is needed for the crops.
  Result<double> bytes_touched(const std::vector<Box>& crops) const;

 private:
  Status add_converted(const std::vector<std::byte>& jpeg, JpegRewriter& rewriter);
};

// The key of a sample in a round, and the crop that RandomResizedCrop as the first op of a chain makes of it.
PrepKey prep_key(unsigned round, std::size_t picture);
std::vector<Box> crops_of_round(const PrepPictures& pictures, unsigned round);

}  // namespace foreload
