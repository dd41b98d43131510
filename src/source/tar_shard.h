// What one tar shard holds, before it is known whether labels come from members or from directories.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"
#include "source/progress.h"
#include "source/tar_reader.h"
#include "source/warnings.h"

namespace foreload {

// The name as a plain relative path: "./" and leading slashes gone. Nothing when it has "..", NUL or is too long.
// "" stands for the root of the archive.
std::optional<std::string> plain_member_name(std::string_view name);

struct ShardMember {
  std::size_t name_at = 0;  // in ShardContent::names
  std::size_t name_size = 0;
  std::uint64_t group = 0;
  Bytes offset = 0;
  Bytes length = 0;
  bool is_main = false;  // "key.jpg", not "key.seg.jpg"
};

struct ShardLabel {
  std::uint64_t group = 0;
  std::int64_t label = kNoLabel;
};

// A group is a run of members whose paths agree up to the first dot of the basename.
struct ShardContent {
  std::string names;
  std::vector<ShardMember> payloads;
  std::vector<ShardLabel> labels;        // by rising group
  std::vector<std::string> directories;  // explicit ones, plain
  bool has_label_members = false;
  bool is_rooted = false;  // names begin with "./": the archive says where its root is
  // For warnings: files that are neither samples nor label members; groups without sample.
  std::uint64_t other_files = 0;
  std::string other_file;
  std::uint64_t groups_without_payload = 0;
  std::string group_without_payload;

  std::string_view name(const ShardMember& member) const {
    return std::string_view(names).substr(member.name_at, member.name_size);
  }
};

struct ShardScanOptions {
  std::string display;      // of the shard, for messages
  std::string label_field;  // of "key.json"
  ScanProgress* progress = nullptr;
};

Result<ShardContent> scan_shard(const ReadAt& read_at, Bytes size, const ShardScanOptions& options, Warnings& warnings);

}  // namespace foreload
