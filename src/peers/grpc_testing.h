// For tests of peers over gRPC: a shelf in memory, credentials, and fetches that are waited for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/random.h"
#include "peers/peers_grpc.h"

namespace foreload {

inline constexpr PeerKey kTestKey{.fingerprint = 11, .validators = 22, .roster = 33};
inline constexpr Duration kPlenty = std::chrono::seconds(50);  // a deadline that only a hang misses

inline constexpr std::uint64_t kForever = ~std::uint64_t{0};

using Content = std::vector<std::byte>;

// What a sample of that id holds everywhere.
inline Content test_sample(SampleId id, std::size_t length) {
  Content bytes(length);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::byte>(mix64(id * 0x10001 + i / 8) >> (8 * (i % 8)));
  }
  return bytes;
}

// All leases must be back when it is destroyed.
class TestShelf final : public PeerShelf, private LeaseBook {
 public:
  TestShelf() = default;
  ~TestShelf() override { EXPECT_EQ(leases(), 0u); }

  // Before it is served.
  void put(SampleId id, std::size_t length) { samples_[id] = test_sample(id, length); }
  Content& content(SampleId id) { return samples_.at(id); }
  std::map<SampleId, std::uint64_t> lies{};  // hashes of samples that are not theirs
  std::function<void(SampleId)> before_take = [](SampleId) {};

  // It is on its way, and says so so many times before it is here. Any time.
  void delay(SampleId id, std::uint64_t times) {
    MutexLock lock(mutex_);
    later_[id] = times;
  }
  void deliver() {  // everything
    MutexLock lock(mutex_);
    later_.clear();
  }
  void know(bool known) {
    MutexLock lock(mutex_);
    knows_ = known;
  }

  // Requests that came.
  std::uint64_t asked() const {
    MutexLock lock(mutex_);
    return asked_;
  }
  std::vector<std::vector<PeerItem>> expected() const {
    MutexLock lock(mutex_);
    return expected_;
  }
  std::uint64_t takes() const {
    MutexLock lock(mutex_);
    return takes_;
  }
  std::uint64_t leases() const {
    MutexLock lock(mutex_);
    return leases_;
  }

  bool knows(const PeerKey& key) const override {
    MutexLock lock(mutex_);
    ++asked_;
    return knows_ && key == kTestKey;
  }
  void expect(const PeerKey& key, std::span<const PeerItem> items) override {
    EXPECT_EQ(key, kTestKey);
    MutexLock lock(mutex_);
    expected_.emplace_back(items.begin(), items.end());
  }
  Taken take(const PeerKey&, const PeerItem& item) override {
    before_take(item.id);
    MutexLock lock(mutex_);
    EXPECT_FALSE(expected_.empty());
    ++takes_;
    const auto found = samples_.find(item.id);
    if (found == samples_.end()) return {};
    const auto later = later_.find(item.id);
    if (later != later_.end() && later->second != 0) {
      if (later->second != kForever) --later->second;
      return {.kind = Taken::Kind::kLater};
    }
    ++leases_;
    const auto lie = lies.find(item.id);
    return {.kind = Taken::Kind::kHere,
            .lease = Lease(this, item.id, found->second),
            .hash = lie != lies.end() ? lie->second : hash_bytes(found->second)};
  }

 private:
  void add(SampleId) override {
    MutexLock lock(mutex_);
    ++leases_;
  }
  void drop(SampleId) override {
    MutexLock lock(mutex_);
    --leases_;
  }

  mutable Mutex mutex_;
  std::map<SampleId, Content> samples_{};
  std::map<SampleId, std::uint64_t> later_ FORELOAD_GUARDED_BY(mutex_){};
  std::vector<std::vector<PeerItem>> expected_ FORELOAD_GUARDED_BY(mutex_){};
  bool knows_ FORELOAD_GUARDED_BY(mutex_) = true;
  mutable std::uint64_t asked_ FORELOAD_GUARDED_BY(mutex_) = 0;
  std::uint64_t takes_ FORELOAD_GUARDED_BY(mutex_) = 0;
  std::uint64_t leases_ FORELOAD_GUARDED_BY(mutex_) = 0;
};

// Of one job: good ones first, then what else was asked for.
inline std::vector<PeerCredentials> job_credentials(std::vector<CredentialTerms> more = {}) {
  more.insert(more.begin(), CredentialTerms());
  auto made = new_credentials(more);
  EXPECT_TRUE(made);
  return std::move(*made);
}

inline GrpcServer::Greet welcome(std::uint64_t nonce = 1) {
  return [nonce](const Hello&) { return HelloAnswer{.nonce = nonce, .cards = {PeerCard{.name = "server"}}}; };
}

inline std::unique_ptr<GrpcServer> serve(TestShelf& shelf, const std::optional<PeerCredentials>& credentials,
                                         const std::string& address = "127.0.0.1:0",
                                         Duration patience = kLaterPatience) {
  auto server =
      GrpcServer::listen({.address = address, .credentials = credentials, .patience = patience}, shelf, welcome());
  EXPECT_TRUE(server) << server.error().message;
  return std::move(*server);
}

// Its only peer is host 0.
inline std::unique_ptr<GrpcPeers> peers_at(const std::string& address,
                                           const std::optional<PeerCredentials>& credentials) {
  auto peers = GrpcPeers::open({.addresses = {address}, .credentials = credentials, .hello = {.job = "test"}});
  EXPECT_TRUE(peers) << peers.error().message;
  return std::move(*peers);
}

// Samples that are wanted of host 0, where they come to, and how that ended.
class Wanted {
 public:
  Wanted(SampleId first, std::size_t count, std::size_t length) {
    for (std::size_t i = 0; i < count; ++i) add(first + i, length);
  }
  Wanted() = default;
  void add(SampleId id, std::size_t length) {
    ids_.push_back(id);
    memory_.emplace_back(length);
  }

  void fetch(PeerTransport& peers, Time deadline = now() + kPlenty, const PeerKey& key = kTestKey) const {
    std::vector<PeerWant> wants;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      wants.push_back({.id = ids_[i], .into = const_cast<Content&>(memory_[i]), .token = token_ + i});
    }
    peers.fetch(0, key, wants, deadline);
  }
  // Waits for so many ends in all. Each comes once; what is said to be here is right.
  void wait(PeerTransport& peers, std::size_t count) {
    const Time limit = now() + 2 * kPlenty;
    while (results_.size() < count && now() < limit) {
      std::vector<PeerEnd> ends;
      peers.wait(ends, limit);
      for (const PeerEnd& end : ends) take(end);
    }
    ASSERT_GE(results_.size(), count) << "not everything has ended";
  }
  void fetch_and_wait(PeerTransport& peers, Time deadline = now() + kPlenty, const PeerKey& key = kTestKey) {
    fetch(peers, deadline, key);
    wait(peers, ids_.size());
  }
  // Asks for all of it once more.
  void again() {
    token_ += 1'000'000;
    results_.clear();
    order_.clear();
    for (Content& bytes : memory_) std::fill(bytes.begin(), bytes.end(), std::byte{0});
  }

  // In the order in which they ended, by place.
  const std::vector<std::size_t>& order() const { return order_; }
  PeerResult result(std::size_t i) const { return results_.at(token_ + i); }
  std::size_t ended() const { return results_.size(); }
  std::size_t count(PeerResult result) const {
    return static_cast<std::size_t>(
        std::count_if(results_.begin(), results_.end(), [&](const auto& each) { return each.second == result; }));
  }
  bool all(PeerResult result) const { return count(result) == ids_.size(); }

 private:
  void take(const PeerEnd& end) {
    ASSERT_GE(end.token, token_);
    const std::size_t i = end.token - token_;
    ASSERT_LT(i, ids_.size());
    ASSERT_TRUE(results_.emplace(end.token, end.result).second) << "ended twice";
    order_.push_back(i);
    if (end.result == PeerResult::kHere) {
      ASSERT_EQ(memory_[i], test_sample(ids_[i], memory_[i].size()));
    }
  }

  std::vector<SampleId> ids_{};
  std::vector<Content> memory_{};
  std::map<std::uint64_t, PeerResult> results_{};
  std::vector<std::size_t> order_{};
  std::uint64_t token_ = 1000;
};

}  // namespace foreload
