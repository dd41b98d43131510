// ReadStream: whole samples of a source, one after the other in an order that the caller chooses, always so many at
// once: through the same tier, engine and emulated storage as a loader's. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/region.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "probe/windows.h"
#include "tier/source_tier.h"

namespace foreload {

struct ReadStreamOptions {
  std::string io{};       // as LoaderOptions::io
  std::string storage{};  // as LoaderOptions::storage
  bool direct = false;    // past the page cache, where the file system can
  unsigned depth = 128;   // the most that is asked for
};

// What came between two moments at each of which a read had just ended.
struct ReadWindow {
  Bytes bytes = 0;
  std::uint64_t samples = 0;
  Duration elapsed{};

  double bytes_per_s() const;
};

class ReadStream {
 public:
  // `source` must outlive this. Fewer reads at once than asked for where samples are so long that their memory would
  // be too much: see max_depth().
  static Result<std::unique_ptr<ReadStream>> open(const Source& source, const ReadStreamOptions& options);
  ~ReadStream();  // gives up what is under way

  unsigned max_depth() const { return static_cast<unsigned>(slots_.size()); }
  Bytes longest() const { return longest_; }  // longer samples are passed over, as are empty ones

  // Nothing: there are no more. Samples that this stream does not read are asked past.
  using Order = std::function<std::optional<SampleId>()>;
  // Ends what is under way and begins anew. REQUIRES: 1 ≤ depth ≤ max_depth().
  Status begin(Order order, unsigned depth, const Allowance& allowance);
  // Reads on until at least `least` samples have come, and either so many bytes or so much time. Fewer samples than
  // that: the order or the time until `deadline` has ended. The first window after begin() starts with the end of the
  // first `depth` reads.
  struct WindowSize {
    std::uint64_t least = 1;
    Bytes bytes = 0;
    Duration time{};
    Time deadline{};
  };
  Result<ReadWindow> window(const WindowSize& size, Allowance& allowance);

  // Reads all of the order and shows every sample, until `deadline`.
  Status read_all(const std::function<Status(SampleId, std::span<const std::byte>)>& show, Time deadline,
                  Allowance& allowance);

 private:
  struct Slot {
    std::span<std::byte> room;
    std::optional<SampleId> id;  // nothing: free
  };

  ReadStream(const Source& source, Region memory, Bytes longest, unsigned depth, std::unique_ptr<SourceTier> tier);
  std::optional<SampleId> next_id();
  void start_more();
  // Starts what may be started and waits for the first to end; their slots are in ended_ and are free with the next
  // call. Nothing ended: the order has, or the patience.
  Status step(Time deadline, const Allowance& allowance);
  Bytes length(std::size_t slot) const { return source_.length(*slots_[slot].id); }
  void give_up();

  const Source& source_;
  Region memory_;
  Bytes longest_;
  std::vector<Slot> slots_;
  std::unique_ptr<SourceTier> tier_;
  Order order_;
  bool order_ended_ = true;
  unsigned depth_ = 1;
  std::uint64_t to_pass_ = 0;  // reads that end before the first window
  Time window_start_{};
  std::vector<std::size_t> ended_;
  std::vector<SourceRead> reads_;
};

// Whether the sample's file system is memory.
bool is_in_memory(const Source& source, SampleId id);
// Whether reads of the sample's file with O_DIRECT go past the page cache. False for objects.
bool reads_direct(const Source& source, SampleId id);
// Takes the sample out of the page cache. False: it can not be, or is still there; nothing: that can not be seen.
std::optional<bool> drop_from_page_cache(const Source& source, SampleId id);

}  // namespace foreload
