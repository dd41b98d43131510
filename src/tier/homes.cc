#include "tier/homes.h"

namespace foreload {

void Homes::use(SampleId id, Moment now) {
  if (used_ == now) return;
  used_ = now;
  bypassed_ = false;
  policy_->use(id, now);
}

// The policy decides once per use: while transit is full the sample is asked for again and again, and every time the
// policy might evict somebody.
std::optional<std::span<std::byte>> Homes::begin(SampleId id, bool in_stream) {
  newcomer_ = id;
  if (!in_stream) {
    if (policy_->admit_substitute(id, *this)) return into_;
    return std::nullopt;
  }
  if (bypassed_) return std::nullopt;
  if (policy_->admit(id, *this)) return into_;
  bypassed_ = true;
  if (policy_->evicts()) record(EventKind::kBypassed, id);
  return std::nullopt;
}

bool Homes::take(SampleId id) {
  const auto into = arena_.begin(id, source_.length(id), Area::kHome);
  if (into) into_ = *into;
  return into.has_value();
}

bool Homes::evict(SampleId id) {
  const bool gone = arena_.evict(id);
  record(gone ? EventKind::kEvicted : EventKind::kSpared, id, newcomer_);
  return gone;
}

void Homes::record(EventKind kind, SampleId id, SampleId newcomer) {
  if (record_ == nullptr) return;
  record_->append({.time = now_, .kind = kind, .a = id, .b = source_.length(id), .c = newcomer});
}

}  // namespace foreload
