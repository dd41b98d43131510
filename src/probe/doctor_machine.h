// The machine as the doctor sees it: limits of this process, of its control groups, and of the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "foreload/types.h"
#include "probe/doctor.h"

namespace foreload {

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

struct MachineView {
  int uring_error = 0;                // errno of the first ring; 0: it works
  std::optional<int> uring_disabled;  // kernel.io_uring_disabled, where the kernel has it
  bool in_container = false;
  std::uint64_t memlock = kNoLimit;     // bytes
  std::uint64_t open_files = kNoLimit;  // that this process may have
  std::uint64_t open_files_hard = kNoLimit;
  std::uint64_t file_size = kNoLimit;  // longest file that it may write
  std::optional<Bytes> shm;            // size of /dev/shm; nothing: there is none
  unsigned online_cores = 1;
  unsigned affine_cores = 1;        // on which it may run
  double quota_cores = 0;           // of its control groups; infinite without a limit
  Bytes memory = 0;                 // of the machine
  Bytes available = 0;              // that it may still take
  Bytes group_headroom = kNoLimit;  // of its control groups
  Duration clock_read{};            // what one look at the clock takes
  std::string clock_source;         // empty: not known
  std::int64_t wall_clock = 0;      // seconds since 1970
};

// What a dataset asks of the machine. Zeros: no dataset is given.
struct DatasetNeeds {
  std::uint64_t kept_open = 0;  // shards
  Bytes bytes = 0;
  Bytes largest = 0;
  bool is_remote = false;
};

MachineView look_at_machine();

Finding judge_io_uring(const MachineView& view);
Finding judge_memlock(const MachineView& view);
Finding judge_open_files(const MachineView& view, const DatasetNeeds& needs);
Finding judge_file_size(const MachineView& view);
Finding judge_shared_memory(const MachineView& view);
Finding judge_cores(const MachineView& view);
Finding judge_memory(const MachineView& view, const DatasetNeeds& needs);
Finding judge_clock(const MachineView& view, const DatasetNeeds& needs);
Findings judge_machine(const MachineView& view, const DatasetNeeds& needs);  // all of these

}  // namespace foreload
