#include "peers/disk_shelf.h"

#include <atomic>
#include <optional>

#include "base/clock.h"
#include "base/hash.h"

namespace foreload {
namespace {

constexpr unsigned kThreads = 4;
constexpr std::size_t kMostReadings = 4096;
constexpr Duration kOld = std::chrono::seconds(2);  // nobody who waits does so for longer

}  // namespace

// Of all samples that were read and are not sent yet.
class DiskShelf::Room {
 public:
  explicit Room(Bytes bytes) : left_(bytes) {}
  bool take(Bytes bytes) {
    Bytes left = left_.load();
    while (bytes <= left && !left_.compare_exchange_weak(left, left - bytes)) {
    }
    return bytes <= left;
  }
  void give_back(Bytes bytes) { left_ += bytes; }

 private:
  std::atomic<Bytes> left_;
};

// Of one sample. The last of its leases ends it.
class DiskShelf::HeldBytes final : private LeaseBook {
 public:
  // REQUIRES: its room was taken.
  HeldBytes(std::shared_ptr<Room> room, Bytes length) : room_(std::move(room)), bytes_(length) {}
  ~HeldBytes() override { room_->give_back(bytes_.size()); }

  std::span<std::byte> bytes() { return bytes_; }
  static Lease lease(std::unique_ptr<HeldBytes> held, SampleId id) {
    HeldBytes* const own = held.release();
    own->leases_ = 1;
    return Lease(own, id, own->bytes_);
  }

 private:
  void add(SampleId /*id*/) override { ++leases_; }
  void drop(SampleId /*id*/) override {
    if (--leases_ == 0) delete this;
  }

  std::shared_ptr<Room> room_;
  std::vector<std::byte> bytes_;
  std::atomic<std::uint32_t> leases_{0};
};

DiskShelf::DiskShelf(Bytes room) : most_(room), room_(std::make_shared<Room>(room)) {}

Result<std::unique_ptr<DiskShelf>> DiskShelf::open(Bytes room) {
  std::unique_ptr<DiskShelf> shelf(new DiskShelf(room));
  DiskShelf* const self = shelf.get();
  for (unsigned i = 0; i < kThreads; ++i) {
    FORELOAD_ASSIGN(Thread thread, Thread::start("fl-disk-shelf", [self] { self->run(); }));
    shelf->threads_.push_back(std::move(thread));
  }
  return shelf;
}

DiskShelf::~DiskShelf() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  threads_.clear();
}

void DiskShelf::expect(const std::shared_ptr<ShelvedDisks>& disks, const PeerItem& item) {
  MutexLock lock(mutex_);
  if (!readings_.contains({disks->id(), item.id})) begin(disks, item, now());
}

PeerShelf::Taken DiskShelf::take(const std::shared_ptr<ShelvedDisks>& disks, const PeerItem& item) {
  using Kind = PeerShelf::Taken::Kind;
  if (!fits(item.length)) return {};
  MutexLock lock(mutex_);
  const Time time = now();
  const auto found = readings_.find({disks->id(), item.id});
  if (found == readings_.end()) {
    if (!disks->board().find(item.id)) return {};
    begin(disks, item, time);
    return {.kind = Kind::kLater};
  }
  if (found->second.ended == Time{}) return {.kind = Kind::kLater};
  Reading ended = std::move(readings_.extract(found).mapped());
  if (!ended.is_right || ended.bytes->bytes().size() != item.length) return {};
  return {.kind = Kind::kHere, .lease = HeldBytes::lease(std::move(ended.bytes), item.id), .hash = ended.place.hash};
}

void DiskShelf::begin(const std::shared_ptr<ShelvedDisks>& disks, const PeerItem& item, Time now) {
  drop_old(now);
  const auto place = disks->board().find(item.id);
  if (!place || item.length == 0 || readings_.size() >= kMostReadings || !room_->take(item.length)) return;
  const Name name{disks->id(), item.id};
  readings_[name] = {disks, item.id, *place, std::make_unique<HeldBytes>(room_, item.length)};
  waiting_.push_back(name);
  changed_.notify_one();
}

void DiskShelf::drop_old(Time now) {
  if (now - looked_ < kOld / 4) return;
  looked_ = now;
  std::erase_if(readings_, [now](const auto& reading) {
    return reading.second.ended != Time{} && now - reading.second.ended > kOld;
  });
}

DiskShelf::Reading* DiskShelf::next() {
  MutexLock lock(mutex_);
  while (waiting_.empty() && !stopping_) changed_.wait(mutex_);
  if (stopping_) return nullptr;
  Reading& reading = readings_.at(waiting_.front());
  waiting_.pop_front();
  return &reading;
}

void DiskShelf::run() {
  while (Reading* const reading = next()) {
    const bool is_right = read(*reading->disks, reading->id, reading->place, reading->bytes->bytes());
    MutexLock lock(mutex_);
    reading->is_right = is_right;
    reading->ended = now();
  }
}

bool DiskShelf::read(ShelvedDisks& disks, SampleId id, const DiskBoard::Place& place, std::span<std::byte> into) {
  const auto file = disks.files().file(disks.board(), place.seat);
  if (file == nullptr) return false;
  if (read_exactly(file->get(), place.offset, into).ok() && hash_bytes(into) == place.hash) return true;
  disks.board().doubt(id, place);
  return false;
}

}  // namespace foreload
