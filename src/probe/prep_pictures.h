// PrepPictures: the JPEGs that prep is measured with, raw and converted, in memory, and the crops of each round.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "prep/chain.h"
#include "prep/geometry.h"

namespace foreload {

struct PrepPictures {
  std::vector<std::vector<std::byte>> raw;
  std::vector<std::vector<std::byte>> converted;  // as they are where they can not be converted
  std::vector<Dimensions> sizes;

  // At most `most` JPEGs of a folder, evenly picked; synthetic ones when `photos` is empty.
  static Result<PrepPictures> load(const std::string& photos, unsigned most);

  double mean_converted_size() const;  // against raw
  // The mean share of a converted file that is needed for the crops.
  Result<double> bytes_touched(const std::vector<Box>& crops) const;
};

// The key of a sample in a round, and the crop that RandomResizedCrop as the first op of a chain makes of it.
PrepKey prep_key(unsigned round, std::size_t picture);
std::vector<Box> crops_of_round(const PrepPictures& pictures, unsigned round);

}  // namespace foreload
