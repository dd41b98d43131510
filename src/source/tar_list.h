// Lists of shards as people write them: "train-{000..009}.tar", "{a,b}/x.tar", "train-*.tar", or one plain path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"

namespace foreload {

bool has_list_syntax(std::string_view text);  // braces or * ? [

// "a{0..2}b{x,y}" → a0bx a0by a1bx …; braces that are neither a range nor a choice stay as they are.
Result<std::vector<std::string>> expand_braces(const std::string& text);

struct ShardList {
  std::string folder;               // the part before the first special character, up to a slash; "." if there is none
  std::string pattern;              // what follows it
  std::vector<std::string> shards;  // relative to folder; plain paths, in list order, each glob sorted by bytes
};

// A path that exists is never taken for a pattern. kNotFound when a glob finds nothing.
Result<ShardList> expand_shards(const std::string& list);

}  // namespace foreload
