// PieceSource: a source of long samples, cut into pieces that are samples of their own: what storage gives is known
// after a few of them, where a few whole samples would be all that an analysis may read.
#pragma once

#include <algorithm>

#include "foreload/source.h"

namespace foreload {

class PieceSource final : public Source {
 public:
  // `whole` must outlive this. REQUIRES: piece > 0.
  PieceSource(const Source& whole, Bytes piece)
      : whole_(whole), piece_(piece), each_(std::max<Bytes>((whole.max_length() + piece - 1) / piece, 1)) {}

  std::uint64_t size() const override { return whole_.size() * each_; }
  // 0: the sample ends before.
  Bytes length(SampleId id) const override {
    const Bytes all = whole_.length(id / each_);
    const Bytes from = std::min(all, id % each_ * piece_);
    return std::min(piece_, all - from);
  }
  Extent locate(SampleId id) const override {
    Extent extent = whole_.locate(id / each_);
    extent.offset += id % each_ * piece_;
    extent.length = length(id);
    return extent;
  }
  std::int64_t label(SampleId id) const override { return whole_.label(id / each_); }
  std::string key(SampleId id) const override { return whole_.key(id / each_); }
  std::optional<Dimensions> dimensions(SampleId) const override { return std::nullopt; }
  const std::string& uri() const override { return whole_.uri(); }
  std::vector<std::string> classes() const override { return whole_.classes(); }
  Bytes total_bytes() const override { return whole_.total_bytes(); }
  Bytes max_length() const override { return std::min(piece_, whole_.max_length()); }
  std::uint64_t fingerprint() const override { return whole_.fingerprint(); }

 private:
  const Source& whole_;
  Bytes piece_;
  std::uint64_t each_;  // pieces of the longest sample
};

}  // namespace foreload
