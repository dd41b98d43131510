// An answered probe makes a peer well, but does not shorten the next pause: who says hello and never delivers would
// cost a deadline every half second. Only samples that came do, or a peer that was started again. Fetches that were
// under way together fail together, and are one failure.
#include "policy/peer_health.h"

#include <algorithm>

namespace foreload {

PeerHealth::Advice PeerHealth::advise(Time now) {
  if (state_ == State::kWell) return Advice::kUse;
  if (state_ == State::kProbed || now < until_) return Advice::kLeave;
  state_ = State::kProbed;
  return Advice::kProbe;
}

void PeerHealth::on_fetched(Time begun) {
  if (state_ == State::kWell && begun >= since_) pause_ = kFirstPause;
}

void PeerHealth::on_failed(Time begun, Time now) {
  if (state_ == State::kWell && begun >= since_) leave(now);
}

void PeerHealth::on_silence(Time now) {
  if (state_ == State::kProbed) leave(now);
}

void PeerHealth::on_hello(std::uint64_t nonce, Time now) {
  const bool another = nonce_ != nonce;
  if (another) pause_ = kFirstPause;
  if (another || state_ != State::kWell) since_ = now;
  nonce_ = nonce;
  state_ = State::kWell;
}

bool PeerHealth::on_greeted(std::uint64_t nonce) {
  if (state_ == State::kWell && nonce_ == nonce) return false;
  if (state_ == State::kLeft) state_ = State::kProbed;
  return true;
}

void PeerHealth::leave(Time now) {
  state_ = State::kLeft;
  until_ = now + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace foreload
