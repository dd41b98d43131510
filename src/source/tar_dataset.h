// A list of tar shards as a Dataset, wherever the shards are. Member names are only ever keys: what is opened for a
// sample is its shard.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "source/dataset.h"
#include "source/shard_files.h"

namespace foreload {

struct TarList {
  std::vector<std::string> shards;   // below the place
  std::string label_field;           // of "key.json"
  std::vector<std::string> classes;  // names of the labels, where the members do not tell
};

// REQUIRES: `files` is of `place`; at least one shard.
std::unique_ptr<Dataset> make_tar_dataset(Place place, TarList list, std::unique_ptr<ShardFiles> files);

}  // namespace foreload
