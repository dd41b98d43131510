// Objects read by blocking requests, for what is needed before a run: heads, manifests, the headers of tar shards.
// Every answer is checked: what was asked for, from an object that did not change meanwhile.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "foreload/result.h"
#include "foreload/source.h"
#include "store/http_client.h"
#include "store/object_store.h"

namespace foreload {

struct ObjectPart {
  FileStamp stamp;    // of the whole object
  std::string bytes;  // fewer than asked for only where the object ends
};
// REQUIRES: length > 0. kNotFound: there is no such object.
Result<ObjectPart> read_part(const ObjectStore& store, HttpClient& client, std::string_view key, Bytes offset,
                             Bytes length);
Result<FileStamp> stamp_of_object(const ObjectStore& store, HttpClient& client, std::string_view key);
// kInvalid: it is longer than `limit`.
Result<std::string> read_whole_object(const ObjectStore& store, HttpClient& client, std::string_view key, Bytes limit);

// An object read from front to back with gaps. What is skipped decides how much is asked for at once: a window where
// the gaps are small, little more than a header where they are large. One thread.
class ObjectFile {
 public:
  // `store` and `client` must outlive this.
  static Result<ObjectFile> open(const ObjectStore& store, HttpClient& client, std::string key);

  const FileStamp& stamp() const { return stamp_; }
  // Fewer bytes only where the object ends. kDataChanged: it is not the object that was opened.
  Result<std::size_t> read_at(Bytes offset, std::span<std::byte> into);

 private:
  ObjectFile(const ObjectStore& store, HttpClient& client, std::string key)
      : store_(&store), client_(&client), key_(std::move(key)) {}
  Status fetch(Bytes offset, Bytes length);

  const ObjectStore* store_;
  HttpClient* client_;
  std::string key_;
  FileStamp stamp_;
  std::string window_;
  Bytes window_at_ = 0;
  Bytes last_end_ = 0;  // of what was read last
  Bytes gap_ = 0;       // the largest of late
};

}  // namespace foreload
