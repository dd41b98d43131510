#include "source/shard_files.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "store/http_client.h"
#include "store/object_file.h"

namespace foreload {

namespace {

constexpr unsigned kRemoteThreads = 16;  // they wait for answers most of the time; as many connections are kept

class LocalShards final : public ShardFiles {
 public:
  explicit LocalShards(int root) : root_(root) {}

  Result<OpenShard> open(const std::string& shard) const override {
    FORELOAD_ASSIGN(Descriptor opened, open_below(root_, shard));
    const auto file = std::make_shared<Descriptor>(std::move(opened));
    FORELOAD_ASSIGN(const FileStamp found, stamp_of(file->get()));
    const Bytes size = found.size;
    return OpenShard{found, [file, size](Bytes offset, std::span<std::byte> into) -> Result<std::size_t> {
                       const Bytes there = std::min<Bytes>(into.size(), size - std::min(offset, size));
                       FORELOAD_TRY(read_exactly(file->get(), offset, into.first(there)));
                       return static_cast<std::size_t>(there);
                     }};
  }
  Result<FileStamp> stamp(const std::string& shard) const override {
    FORELOAD_ASSIGN(const Descriptor file, open_below(root_, shard));
    return stamp_of(file.get());
  }
  unsigned threads(unsigned cores) const override { return cores; }

 private:
  const int root_;
};

class RemoteShards final : public ShardFiles {
 public:
  explicit RemoteShards(const ObjectStore& store) : store_(store), client_(std::make_unique<HttpClient>()) {}

  Result<OpenShard> open(const std::string& shard) const override {
    FORELOAD_ASSIGN(ObjectFile opened, ObjectFile::open(store_, *client_, shard));
    const auto file = std::make_shared<ObjectFile>(std::move(opened));
    return OpenShard{file->stamp(),
                     [file](Bytes offset, std::span<std::byte> into) { return file->read_at(offset, into); }};
  }
  Result<FileStamp> stamp(const std::string& shard) const override { return stamp_of_object(store_, *client_, shard); }
  unsigned threads(unsigned cores) const override { return std::max(cores, kRemoteThreads); }

 private:
  const ObjectStore& store_;
  const std::unique_ptr<HttpClient> client_;
};

}  // namespace

std::unique_ptr<ShardFiles> local_shards(const Place& place) {
  FORELOAD_CHECK(place.root.valid(), "a local place has a root");
  return std::make_unique<LocalShards>(place.root.get());
}

std::unique_ptr<ShardFiles> remote_shards(const Place& place) {
  FORELOAD_CHECK(place.store != nullptr, "a remote place has a store");
  return std::make_unique<RemoteShards>(*place.store);
}

}  // namespace foreload
