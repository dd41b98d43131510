// Tar shards in object stores: indexed by ranged reads of their headers, with the code that indexes local ones.
#include <fmt/core.h>

#include <utility>

#include "source/dataset.h"
#include "source/remote_list.h"
#include "source/shard_files.h"
#include "source/tar_dataset.h"

namespace foreload {

Result<std::unique_ptr<Dataset>> open_remote_tars(const std::string& list, const SourceOptions& options) {
  FORELOAD_ASSIGN(RemoteList found, expand_remote(list));
  found.place.identity = fmt::format("tar {} {} {}", options.label_field, found.pattern, found.place.identity);
  auto files = remote_shards(found.place);
  return make_tar_dataset(std::move(found.place), {std::move(found.shards), options.label_field, {}}, std::move(files));
}

}  // namespace foreload
