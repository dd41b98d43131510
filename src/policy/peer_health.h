// PeerHealth: whether a peer is asked. After a failure it is left alone for a time that doubles with every further one;
// then it is asked once whether it is there, and nothing waits for that. A plain state machine.
#pragma once

#include <cstdint>
#include <optional>

#include "foreload/types.h"

namespace foreload {

class PeerHealth {
 public:
  static constexpr Duration kFirstPause = std::chrono::milliseconds(500);
  static constexpr Duration kLongestPause = std::chrono::seconds(30);

  enum class Advice {
    kUse,
    kLeave,  // it has failed: do not ask it
    kProbe,  // do not ask it for anything but whether it is there, and say how that went; advised once
  };
  Advice advise(Time now);

  // A fetch has ended. `begun`: when it was sent; what was sent before the peer was found well again does not count.
  void on_fetched(Time begun);
  void on_failed(Time begun, Time now);
  // A probe was not answered, or not as a peer would.
  void on_silence(Time now);
  // A probe was answered. Another `nonce` than before: it was started again.
  void on_hello(std::uint64_t nonce, Time now);
  // It said hello by itself. True: probe it now.
  bool on_greeted(std::uint64_t nonce);

 private:
  enum class State { kWell, kLeft, kProbed };

  void leave(Time now);

  State state_ = State::kWell;
  Time since_ = Time::min();  // well since
  Time until_{};              // left alone until
  Duration pause_ = kFirstPause;
  std::optional<std::uint64_t> nonce_;
};

}  // namespace foreload
