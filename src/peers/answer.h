// FetchAnswer: what a peer sends for one fetch, message by message, is checked and written to where it is wanted. Every
// want ends exactly once, whatever comes, and nothing is written for a want that has ended. No I/O; one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "peers/peers.h"
#include "peers/wire.h"

namespace foreload {

class FetchAnswer {
 public:
  explicit FetchAnswer(std::span<const PeerWant> wants) : wants_(wants.begin(), wants.end()), left_(wants.size()) {}

  using Pieces = std::span<const std::span<const std::byte>>;
  // The next message, a SampleFrame and its part, cut into pieces anyhow. Appends what ends by it. False: the message
  // breaks the rules; nothing more of this peer is to be believed, and end() comes next.
  [[nodiscard]] bool take(Pieces message, std::vector<PeerEnd>& ends);
  // Nothing more comes: what is still open ends so.
  void end(PeerResult result, std::vector<PeerEnd>& ends);

  bool complete() const { return left_ == 0; }
  Bytes bytes() const { return bytes_; }        // that came for samples that are here
  std::size_t wrong() const { return wrong_; }  // samples that did not have their hash or length

 private:
  // A sample of which the first part came.
  struct Coming {
    SampleFrame frame{};  // offset: of the next part
    bool fits = false;    // it can be what is wanted; else its parts are dropped
  };

  bool begin(const SampleFrame& frame, std::vector<PeerEnd>& ends);
  void close(std::size_t index, PeerResult result, std::vector<PeerEnd>& ends, Bytes cut = 0);

  std::vector<PeerWant> wants_;
  std::vector<bool> ended_ = std::vector<bool>(wants_.size());
  std::optional<Coming> coming_{};
  std::size_t left_;
  std::size_t wrong_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace foreload
