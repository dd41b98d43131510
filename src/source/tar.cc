// Tar shards on local disks, read by random access and never extracted. The one file that is opened for a sample is its
// shard, below the folder of the list.
#include <fmt/core.h>

#include <utility>

#include "base/files.h"
#include "source/dataset.h"
#include "source/payload.h"
#include "source/records.h"
#include "source/shard_files.h"
#include "source/tar_dataset.h"
#include "source/tar_list.h"

namespace foreload {

Result<std::unique_ptr<Dataset>> open_tars(const std::string& list, const SourceOptions& options) {
  FORELOAD_ASSIGN(ShardList found, expand_shards(list));
  Place place;
  FORELOAD_ASSIGN(place.root, open_directory(found.folder));
  const std::string_view first_folder = directory_name(found.shards.front());
  place.index_folder = found.folder;
  if (!first_folder.empty()) place.index_folder.append("/").append(first_folder);
  place.identity = fmt::format("tar {} {}", options.label_field, found.pattern);
  place.folder = std::move(found.folder);
  auto files = local_shards(place);
  return make_tar_dataset(std::move(place), {std::move(found.shards), options.label_field, {}}, std::move(files));
}

Result<std::unique_ptr<Dataset>> open_record_shards(const std::string& folder, const RecordShards& shards) {
  const std::string label_field = SourceOptions().label_field;
  Place place;
  FORELOAD_ASSIGN(place.root, open_directory(folder));
  place.folder = folder;
  while (place.folder.size() > 1 && place.folder.back() == '/') place.folder.pop_back();
  place.index_folder = place.folder;
  // The same as of "FOLDER/shard-*.tar", so that both share one index.
  place.identity = fmt::format("tar {} shard-*.tar", label_field);
  auto files = local_shards(place);
  return make_tar_dataset(std::move(place), {record_shard_names(shards.count), label_field, shards.classes},
                          std::move(files));
}

}  // namespace foreload
