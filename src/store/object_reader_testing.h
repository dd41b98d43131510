// For tests of ObjectReader: a reader over a loopback server, and jobs whose bytes are compared with the object's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "store/http_server_testing.h"
#include "store/object_reader.h"

namespace foreload {

// Bytes that differ from place to place.
inline std::string content_of(Bytes size) {
  std::string content(size, '\0');
  for (Bytes at = 0; at < size; ++at) content[at] = static_cast<char>(mix64(at / 8) >> (8 * (at % 8)));
  return content;
}

inline FileStamp stamp_with(Bytes size, const std::string& etag = "\"v1\"") {
  HttpResponse response;
  response.content_length = size;
  response.etag = etag;
  return stamp_of(response);
}

inline ObjectReaderOptions quick() {
  return {.http = {.connect_timeout = std::chrono::seconds(2),
                   .stall_timeout = std::chrono::seconds(1),
                   .retry = {.attempts = 6,
                             .first_pause = std::chrono::milliseconds(1),
                             .longest_pause = std::chrono::milliseconds(10),
                             .longest_asked = std::chrono::milliseconds(20)}}};
}

// A reader, a store, and jobs whose bytes are compared with the content.
class Reading {
 public:
  Reading(TestServer& server, std::string content, const ObjectReaderOptions& options = quick())
      : store_(server.url()), content_(std::move(content)), expect_(stamp_with(content_.size())) {
    auto started = ObjectReader::start(options, counters_, [this] {
      MutexLock lock(mutex_);
      woken_ = true;
      changed_.notify_all();
    });
    reader_ = std::move(*started);
  }

  void expect(const FileStamp& stamp) { expect_ = stamp; }

  void want(Bytes offset, Bytes length, std::uint64_t object = 0) {
    wanted_.push_back({offset, std::string(length, '\x55')});
    Wanted& wanted = wanted_.back();
    queued_.push_back({.tag = wanted_.size() - 1,
                       .store = &store_,
                       .key = "object",
                       .object = object,
                       .offset = offset,
                       .into = std::as_writable_bytes(std::span(wanted.bytes.data(), wanted.bytes.size())),
                       .expect = expect_});
  }
  void submit() {
    reader_->submit(queued_);
    queued_.clear();
  }
  // Of all jobs that were ever wanted, by tag.
  std::vector<ObjectResult> wait(Duration patience = std::chrono::seconds(30)) {
    const Time deadline = now() + patience;
    while (results_.size() < wanted_.size() && now() < deadline) {
      {
        MutexLock lock(mutex_);
        while (!woken_ && now() < deadline) changed_.wait_until(mutex_, deadline);
        woken_ = false;
      }
      reader_->take(results_);
    }
    EXPECT_EQ(results_.size(), wanted_.size()) << "not all jobs have ended";
    std::sort(results_.begin(), results_.end(), [](const auto& a, const auto& b) { return a.tag < b.tag; });
    return results_;
  }
  std::vector<ObjectResult> read() {
    submit();
    return wait();
  }
  void expect_all_right() {
    for (const ObjectResult& result : read()) {
      ASSERT_EQ(result.outcome, ReadOutcome::kDone) << result.error.message;
      const Wanted& wanted = wanted_[result.tag];
      ASSERT_EQ(wanted.bytes, content_.substr(wanted.offset, wanted.bytes.size())) << "job " << result.tag;
    }
  }

  ObjectReader& reader() { return *reader_; }
  ObjectStats stats() const { return counters_.read(); }
  void end() { reader_.reset(); }

 private:
  struct Wanted {
    Bytes offset;
    std::string bytes;
  };

  TestStore store_;
  std::string content_;
  FileStamp expect_;
  ObjectCounters counters_;
  Mutex mutex_;
  CondVar changed_;
  bool woken_ FORELOAD_GUARDED_BY(mutex_) = false;
  std::deque<Wanted> wanted_;
  std::vector<ObjectJob> queued_;
  std::vector<ObjectResult> results_;
  std::unique_ptr<ObjectReader> reader_;
};

inline const std::string kContent = content_of(3'000'000);

inline TestServer::Handler plain() {
  return [](const TestRequest& request) { return TestReply{object_reply(request, kContent)}; };
}

}  // namespace foreload
