// HostName: what a host is called, and where its members listen: 64 places, one local socket each. A plain name stands
// for abstract sockets of this user. A name with a slash is a folder, for processes that do not share a network
// namespace (containers): it must belong to this user alone.
#pragma once

#include <string>

#include "base/local_socket.h"
#include "foreload/result.h"

namespace foreload {

inline constexpr unsigned kMostMembers = 64;

class HostName {
 public:
  // kInvalid names what is wrong with it. A folder that does not exist is made, with mode 0700.
  static Result<HostName> parse(const std::string& text);

  const std::string& text() const { return text_; }
  LocalAddress address(unsigned index) const;
  // Held while somebody may take over a socket that was left behind. Abstract ones are never left behind.
  Result<Descriptor> lock_folder() const;

 private:
  HostName(std::string text, bool is_folder) : text_(std::move(text)), is_folder_(is_folder) {}
  std::string text_;
  bool is_folder_;
};

}  // namespace foreload
