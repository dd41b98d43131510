// Coalescer: ranges of objects that wait for a request, and which of them one request fetches together: the one that
// waits longest and its neighbours in the same object, as far as the bytes between them cost less than a request of
// their own. A plain value.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "foreload/types.h"

namespace foreload {

struct CoalesceOptions {
  Bytes longest = 2_MiB;     // of a request for several ranges
  Bytes small_gap = 4_KiB;   // between neighbours: always bridged. Headers and small members of a tar
  Bytes large_gap = 64_KiB;  // bridged while what is bridged stays a sixteenth of what is wanted
};

struct WantedRange {
  std::uint64_t tag = 0;
  std::uint64_t object = 0;  // equal: same object
  Bytes offset = 0;
  Bytes length = 0;
};

class Coalescer {
 public:
  explicit Coalescer(const CoalesceOptions& options = {}) : options_(options) {}

  // Those added first are needed first. REQUIRES: tags differ.
  void add(const WantedRange& range);
  bool is_empty() const { return oldest_.empty(); }
  std::size_t size() const { return oldest_.size(); }
  // What goes into the next request, by offset, without overlaps. Empty: nothing waits.
  // `patient`: nor does it go while it may grow: several ranges follow one another, or what was taken last, and there
  // is room for one more.
  std::vector<WantedRange> take(bool patient = false);
  void clear();

 private:
  struct Waiting {
    WantedRange range;
    std::uint64_t turn = 0;
  };
  using Place = std::tuple<std::uint64_t, Bytes, std::uint64_t>;  // object, offset, tag
  using Places = std::map<Place, Waiting>;

  struct Group;
  Group gather(Places::iterator first);
  bool fits(const Group& group, const WantedRange& next) const;
  bool may_grow(const Group& group) const;
  void remove(Places::iterator place);

  CoalesceOptions options_;
  std::uint64_t turn_ = 0;
  Places places_;
  std::map<std::uint64_t, Place> oldest_;  // by turn
  std::uint64_t last_object_ = 0;          // what was taken last
  Bytes last_end_ = ~Bytes{0};
  std::size_t last_ranges_ = 0;
};

}  // namespace foreload
