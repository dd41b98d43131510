// ShardFiles: the tar shards of a list, wherever they are: on a local disk or in an object store.
#pragma once

#include <memory>
#include <string>

#include "foreload/result.h"
#include "foreload/source.h"
#include "source/dataset.h"
#include "source/tar_reader.h"

namespace foreload {

struct OpenShard {
  FileStamp stamp;
  ReadAt read_at;  // keeps what it reads from open
};

// Any thread. What `open` returns belongs to one thread.
class ShardFiles {
 public:
  virtual ~ShardFiles() = default;

  virtual Result<OpenShard> open(const std::string& shard) const = 0;
  virtual Result<FileStamp> stamp(const std::string& shard) const = 0;
  // How many shards to look at together when `cores` may be busy.
  virtual unsigned threads(unsigned cores) const = 0;
};

// Both need the place for as long as they live: its root, or its store.
std::unique_ptr<ShardFiles> local_shards(const Place& place);
std::unique_ptr<ShardFiles> remote_shards(const Place& place);

}  // namespace foreload
