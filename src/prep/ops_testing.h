// For tests and benchmarks: a transform of their own in the table of this process. No program that users start does it.
#pragma once

#include "prep/op.h"

namespace foreload {

// In the place of one with the same name. REQUIRES: nobody parses or compiles a chain meanwhile; what op_entries() and
// find_op() gave before is not used any more.
void add_op_for_tests(OpEntry entry);

}  // namespace foreload
