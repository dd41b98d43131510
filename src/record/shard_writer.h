// ShardWriter: writes one shard under a name that nobody takes for a shard, reads it back, and only then gives it its
// name. Given up in the middle, it leaves nothing. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "foreload/result.h"
#include "record/convert_plan.h"
#include "record/destination.h"
#include "record/sample_converter.h"
#include "record/shard_account.h"
#include "source/record_rows.h"

namespace foreload {

class ShardWriter {
 public:
  static Result<ShardWriter> create(const Destination& destination, std::uint64_t shard);
  ShardWriter(ShardWriter&&) noexcept = default;
  ~ShardWriter();

  Status add(const Source& source, SampleId id, const ConvertedSample& sample);
  // Ends the archive, brings it to the disk, compares it with what was added, and publishes it.
  Result<ShardAccount> publish() &&;

 private:
  struct Member {
    std::string name;
    Bytes offset = 0;
    Bytes size = 0;
  };
  ShardWriter(const Destination& destination, std::uint64_t shard, Descriptor file);
  Status append(std::span<const std::byte> bytes);
  Status append_member(const std::string& name, std::span<const std::byte> content);
  Status flush();
  Status verify() const;
  Status verify_members() const;
  Error failed(const Error& error) const;
  std::string path() const;

  const Destination* destination_;
  Descriptor file_;  // closed: published, or moved from
  ShardAccount account_;
  RecordRowsBuilder rows_;
  RecordNames names_;
  std::vector<Member> members_;
  Hasher hasher_;
  std::vector<std::byte> pending_;  // not written yet
  Bytes size_ = 0;
};

}  // namespace foreload
