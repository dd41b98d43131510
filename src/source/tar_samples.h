// Decides which members of the shards are samples, in which order and with which labels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foreload/types.h"
#include "source/tar_shard.h"
#include "source/warnings.h"

namespace foreload {

struct TarSample {
  std::size_t shard = 0;
  std::size_t payload = 0;  // of the shard's payloads
  std::int64_t label = kNoLabel;
};

struct TarSamples {
  std::vector<TarSample> samples;  // in id order
  std::vector<std::string> classes;
  std::size_t root_size = 0;  // how many characters of each name are the archived folder itself

  std::string_view key(const std::vector<ShardContent>& shards, const TarSample& sample) const;
};

// With label members (WebDataset): one sample per group, in the order of the shards. Without: every payload is a
// sample; order, labels and keys are those of the folder that was archived.
TarSamples choose_samples(const std::vector<ShardContent>& shards, Warnings& warnings);

}  // namespace foreload
