// Sockets between processes of one machine: short frames, each with up to a few descriptors, and the other side's
// credentials. Everything has a deadline; what comes in is bounded before it is looked at.
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

// Where a socket listens: an abstract name, which is free again when its holder is dead, or a path.
struct LocalAddress {
  std::string name;
  bool is_path = false;
};

inline constexpr std::size_t kMostFrameBytes = 512;
inline constexpr std::size_t kMostFrameFiles = 8;

struct Frame {
  std::vector<std::byte> bytes;
  std::vector<Descriptor> files;
};

struct PeerIdentity {
  uid_t user = 0;
  pid_t process = 0;
};

// Nothing: somebody listens there. A path that nobody listens at any more is taken over; the caller sees to it that
// nobody else does the same at the same time.
Result<std::optional<Descriptor>> listen_local(const LocalAddress& address);
// Nothing: nobody listens there.
Result<std::optional<Descriptor>> connect_local(const LocalAddress& address);
// Nothing: no connection is waiting.
std::optional<Descriptor> accept_local(int listener);
std::optional<PeerIdentity> peer_of(int socket);

// False: the other side is gone, or did not take it now. Never blocks.
bool send_frame(int socket, std::span<const std::byte> bytes, std::span<const int> files = {});

enum class Received { kFrame, kNothing, kClosed, kBad };  // kBad: longer than allowed
// Never blocks. Descriptors beyond `files` are closed by the kernel.
Received receive_frame(int socket, Frame& frame, std::size_t files = 0);

// Waits until one of the sockets has something to read, or is closed, or until the deadline.
void wait_readable(std::span<const int> sockets, Time deadline);

}  // namespace foreload
