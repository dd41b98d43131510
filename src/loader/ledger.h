// For tests: a dataset in which every sample carries its id, its length and a checksum, so that order, exactly-once and
// intact bytes are judged without trust in the loader; and the fifty-line reference loader to compare with.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/test_folder.h"
#include "foreload/loader.h"
#include "loader/order.h"
#include "plan/assignment.h"

namespace foreload {

class Ledger {
 public:
  static constexpr std::size_t kLength = 512;

  explicit Ledger(std::uint64_t samples) {
    for (std::uint64_t id = 0; id < samples; ++id) folder_.write(file(id), content(id));
  }

  static std::string file(std::uint64_t id) {
    char name[64];
    std::snprintf(name, sizeof name, "class%03llu/s%06llu.bin", static_cast<unsigned long long>(id / 100),
                  static_cast<unsigned long long>(id));
    return name;
  }
  static std::string content(std::uint64_t id) {
    std::string bytes(kLength, '\0');
    for (std::size_t i = 16; i < kLength - 8; ++i) bytes[i] = static_cast<char>(id * 31 + i * 7);
    const std::uint64_t head[2] = {id, kLength};
    std::memcpy(bytes.data(), head, sizeof head);
    const std::uint64_t check = hash_bytes(std::as_bytes(std::span(bytes).first(kLength - 8)));
    std::memcpy(bytes.data() + kLength - 8, &check, sizeof check);
    return bytes;
  }
  // The id that the bytes claim; fails the test when they are not whole.
  static std::uint64_t read(std::span<const std::byte> bytes) {
    std::uint64_t head[2];
    std::uint64_t check = 0;
    std::memcpy(head, bytes.data(), sizeof head);
    std::memcpy(&check, bytes.data() + kLength - 8, sizeof check);
    EXPECT_EQ(head[1], kLength);
    EXPECT_EQ(check, hash_bytes(bytes.first(kLength - 8))) << "sample " << head[0];
    return head[0];
  }

  const TestFolder& folder() const { return folder_; }
  LoaderOptions options(std::uint64_t batch = 8) const {
    LoaderOptions options;
    options.dataset = {folder_.path()};
    options.batch = batch;
    options.seed = 7;
    options.chain = {array(DType::kU8, {kLength}, true)};
    options.memory = 64_MiB;
    options.workers = 2;
    return options;
  }

 private:
  TestFolder folder_;
};

inline Loader open(LoaderOptions options) {
  auto loader = Loader::open(std::move(options));
  if (!loader.ok()) {
    ADD_FAILURE() << loader.error().message;
    std::abort();
  }
  return std::move(*loader);
}

// What a learner saw: (epoch, position) → id.
using Seen = std::map<std::pair<Epoch, Position>, SampleId>;

inline void note_batch(const Loader& loader, const Batch& got, Seen& seen) {
  const std::vector<Position> positions = loader.positions(got.epoch(), got.step());
  ASSERT_EQ(positions.size(), got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const SampleId id = Ledger::read(got.data().subspan(i * Ledger::kLength, Ledger::kLength));
    EXPECT_EQ(id, got.ids()[i]);
    EXPECT_EQ(got.positions()[i], positions[i]);
    EXPECT_EQ(got.labels()[i], static_cast<std::int64_t>(id / 100));
    EXPECT_TRUE(seen.emplace(std::pair{got.epoch(), positions[i]}, id).second) << "delivered twice";
  }
}

// Reads to the epoch's end, or `most` batches, and checks every sample on the way. False: ended by an error.
inline bool read_epoch(Loader& loader, Seen& seen, std::uint64_t most = ~0ull) {
  for (std::uint64_t n = 0; n < most; ++n) {
    auto batch = loader.next();
    EXPECT_TRUE(batch.ok()) << (batch.ok() ? "" : batch.error().message);
    if (!batch.ok()) return false;
    if (!*batch) return true;
    note_batch(loader, **batch, seen);
  }
  return true;
}

// The reference: no threads, no cache, nothing shared with the loader but the definitions of schedule and padding.
inline Seen reference(std::uint64_t samples, const LoaderOptions& options, Epoch epochs) {
  const Schedule schedule = *make_schedule(options, samples);
  const std::uint64_t size = schedule.size();
  const std::uint64_t batch = options.global_batch != 0 ? options.global_batch : options.batch * options.world;
  std::uint64_t positions = size;
  if (options.last_batch == LastBatch::kDrop) positions = size / batch * batch;
  const bool pad =
      options.last_batch == LastBatch::kPad || (options.last_batch == LastBatch::kAuto && options.world > 1);
  if (pad) positions = (size + options.world - 1) / options.world * options.world;
  Seen seen;
  for (Epoch e = 0; e < epochs; ++e) {
    for (Position p = 0; p < positions; ++p) seen[{e, p}] = schedule.sample_at(e, p % size);
  }
  return seen;
}

}  // namespace foreload
