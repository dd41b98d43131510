// What the kernel says of a process: its share of memory, what it has read, what its threads do. Any thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

// Its pages; of those that n processes map, it has an n-th.
struct MemoryShare {
  Bytes all = 0;
  Bytes anonymous = 0;  // heap, stacks, private maps
  Bytes shared = 0;     // memory files
  Bytes files = 0;      // code, indexes
};
Result<MemoryShare> memory_share(pid_t process);
// From the text of smaps_rollup; kInvalid: it does not say.
Result<MemoryShare> parse_memory_share(std::string_view rollup);

// Memory files that it has open, and the memory that each takes, whoever touched it or has only reserved it.
std::map<ino_t, Bytes> memory_files(pid_t process);

// Bytes that its read calls returned, whatever they read. Reads through io_uring are not among them.
Result<Bytes> bytes_read(pid_t process);

// Threads whose names begin so, as they are now.
std::vector<pid_t> threads_named(pid_t process, std::string_view prefix);
// 'R': it runs, or would if there were a core; 0: it has ended.
char thread_state(pid_t process, pid_t thread);
// From the text of a thread's stat; 0: it is none.
char parse_thread_state(std::string_view stat);

}  // namespace foreload
