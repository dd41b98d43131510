#include "peers/cutter.h"

#include <utility>
#include <vector>

#include "base/hash.h"
#include "prep/jpeg_cut.h"

namespace foreload {
namespace {

// A cut, which lives as long as there are leases on it.
class CutBook final : public LeaseBook {
 public:
  CutBook(std::vector<std::byte> bytes, std::shared_ptr<std::atomic<Bytes>> held)
      : bytes_(std::move(bytes)), held_(std::move(held)) {
    *held_ += bytes_.size();
  }
  ~CutBook() override { *held_ -= bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void add(SampleId /*id*/) override { ++leases_; }
  void drop(SampleId /*id*/) override {
    if (--leases_ == 0) delete this;
  }

  const std::vector<std::byte> bytes_;
  const std::shared_ptr<std::atomic<Bytes>> held_;
  std::atomic<std::uint64_t> leases_{1};
};

}  // namespace

bool Cutter::cut(const PeerItem& item, PeerShelf::Taken& sample) const {
  const std::span<const std::byte> whole = sample.lease.bytes();
  if (!item.crop.is_wanted() || !item.crop.is_sound() || *held_ + whole.size() > most_) return false;
  const Box box{item.crop.x, item.crop.y, item.crop.width, item.crop.height};
  auto bytes = cut_jpeg(whole, item.crop.picture(), box);
  if (!bytes || bytes->size() >= whole.size() || hash_bytes(whole) != sample.hash) return false;
  auto* const book = new CutBook(std::move(*bytes), held_);  // goes with its last lease
  sample.hash = hash_bytes(book->bytes());
  sample.lease = Lease(book, item.id, book->bytes());
  return true;
}

}  // namespace foreload
