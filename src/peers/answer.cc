// The rules: every index is answered at most once; the parts of a sample come in their order and without anything
// between them. A sample of another length, with another hash, or cut although nobody said how, harms only itself.
#include "peers/answer.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace foreload {
namespace {

using Piece = std::span<const std::byte>;

// Hands out the bytes of pieces one after the other.
class Walk {
 public:
  explicit Walk(FetchAnswer::Pieces pieces) : pieces_(pieces) {}

  // REQUIRES: so many are left.
  void copy_to(std::span<std::byte> into) {
    while (!into.empty()) {
      const Piece rest = pieces_.front().subspan(at_);
      const std::size_t count = std::min(rest.size(), into.size());
      if (count != 0) std::memcpy(into.data(), rest.data(), count);
      into = into.subspan(count);
      at_ += count;
      if (count == rest.size()) {
        pieces_ = pieces_.subspan(1);
        at_ = 0;
      }
    }
  }

 private:
  FetchAnswer::Pieces pieces_;
  std::size_t at_ = 0;  // in the first of them
};

}  // namespace

bool FetchAnswer::take(Pieces message, std::vector<PeerEnd>& ends) {
  Bytes length = 0;
  for (const Piece& piece : message) length += piece.size();
  if (length < kSampleFrameBytes) return false;
  Walk walk(message);
  std::array<std::byte, kSampleFrameBytes> head;
  walk.copy_to(head);
  const Bytes part = length - kSampleFrameBytes;
  const auto frame = parse_sample_frame(head, part);
  if (!frame) return false;
  if (!coming_) {
    if (!begin(*frame, ends)) return false;
  } else if (coming_->frame != *frame) {
    return false;
  }
  if (!coming_) return true;
  const std::span<std::byte> into = wants_[frame->index].into;
  if (coming_->fits) walk.copy_to(into.subspan(frame->offset, part));
  coming_->frame.offset += part;
  if (coming_->frame.offset < frame->length) return true;
  const bool right = coming_->fits && hash_bytes(into.first(frame->length)) == frame->hash;
  if (right) {
    bytes_ += frame->length;
  } else {
    ++wrong_;
  }
  close(frame->index, right ? PeerResult::kHere : PeerResult::kWrong, ends, right && frame->is_cut ? frame->length : 0);
  coming_.reset();
  return true;
}

bool FetchAnswer::begin(const SampleFrame& frame, std::vector<PeerEnd>& ends) {
  if (frame.index >= wants_.size() || ended_[frame.index] || frame.offset != 0) return false;
  if (frame.result == PeerResult::kAbsent) {
    close(frame.index, PeerResult::kAbsent, ends);
  } else {
    const PeerWant& want = wants_[frame.index];
    const bool may_be_cut = want.crop.is_wanted() && frame.length < want.into.size();
    coming_ = Coming{.frame = frame, .fits = frame.is_cut ? may_be_cut : frame.length == want.into.size()};
  }
  return true;
}

void FetchAnswer::close(std::size_t index, PeerResult result, std::vector<PeerEnd>& ends, Bytes cut) {
  ended_[index] = true;
  --left_;
  ends.push_back({wants_[index].token, result, cut});
}

void FetchAnswer::end(PeerResult result, std::vector<PeerEnd>& ends) {
  coming_.reset();
  for (std::size_t i = 0; i < wants_.size(); ++i) {
    if (!ended_[i]) close(i, result, ends);
  }
}

}  // namespace foreload
