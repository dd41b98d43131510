// ShardAccount: what became of the samples of one shard. Kept beside a finished shard until the conversion is complete,
// so that a later call need not look into the shard again.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "record/convert.h"
#include "record/destination.h"
#include "record/sample_converter.h"
#include "source/record_rows.h"

namespace foreload {

struct ShardAccount {
  std::uint64_t shard = 0;
  Bytes file_bytes = 0;
  std::uint64_t file_hash = 0;  // xxh3 of the shard
  // Of each sample, in the order of the shard.
  std::string outcomes;  // letters of Outcome
  std::vector<Bytes> lengths;
  std::vector<Dimensions> sizes;
  std::vector<BadSample> bad;

  Outcome outcome(std::uint64_t i) const { return static_cast<Outcome>(outcomes[i]); }
};

Status save_account(const Destination& destination, const ShardAccount& account, std::span<const std::byte> rows);
// Of a finished shard with so many samples, which is read and compared with its hash. An error: it is not finished or
// was changed, and has to be made again; kCancelled: `stop` said so.
Result<ShardAccount> load_account(const Destination& destination, std::uint64_t shard, std::uint64_t samples,
                                  const std::function<bool()>& stop);
Result<RecordRows> load_rows(const Destination& destination, const ShardAccount& account);

// xxh3 of the first `bytes` of a file.
Result<std::uint64_t> hash_file(int fd, Bytes bytes, const std::function<bool()>& stop);

}  // namespace foreload
