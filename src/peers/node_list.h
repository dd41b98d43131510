// How Slurm writes lists. Parsing is total, and what comes out is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"

namespace foreload {

// "node[01-03,7],other": node01, node02, node03, node7, other. At most `most` names. kInvalid says what is wrong,
// without the text itself.
Result<std::vector<std::string>> expand_node_list(std::string_view text, std::size_t most);

// "4(x2),3": the count of that node, here 4, 4 and 3. A list of one count without repetition counts for every node.
Result<std::uint32_t> count_of_node(std::string_view text, std::size_t node);

}  // namespace foreload
