// ListenAddress: where a server listens. Loopback unless something else was written out.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/files.h"
#include "foreload/result.h"

namespace foreload {

class ListenAddress {
 public:
  // "9464" (loopback), "127.0.0.1:9464", "localhost:9464", "[::1]:9464". Port 0: any that is free. kInvalid says what
  // is wrong with it. A name may be looked up, and that may take time.
  static Result<ListenAddress> parse(const std::string& text);
  // Of a socket that listens.
  static Result<ListenAddress> of_socket(int socket);

  std::string text() const;  // numbers only: "127.0.0.1:9464"
  bool is_loopback() const;  // nobody beyond this machine reaches it
  std::uint16_t port() const;

  // A socket that listens there and never blocks. An address that is taken is kIo, and says what to do.
  Result<Descriptor> listen() const;

 private:
  ListenAddress() = default;
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address_); }

  sockaddr_storage address_{};
  socklen_t length_ = 0;
};

}  // namespace foreload
