// ObjectAttempt: one request for the bytes of a group of jobs. Checks the answer's head before it keeps a byte, spreads
// the body over the jobs' spans, drops what lies between them, and judges how it ended.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/answer.h"
#include "store/http_transfer.h"
#include "store/object_reader.h"

namespace foreload {

// Jobs that one request serves.
struct ObjectGroup {
  std::vector<ObjectJob> jobs{};  // by offset, of one object, without overlaps
  Bytes offset = 0;
  Bytes length = 0;
  unsigned attempts = 0;   // requests that were sent, except second ones
  unsigned doubts = 0;     // of their answers: doubtful
  unsigned running = 0;    // requests under way
  bool is_hedged = false;  // the running attempt has a twin, or had one

  std::uint64_t name() const { return jobs.front().tag; }  // as RequestPolicy calls it
  AskedRange asked() const {
    const ObjectJob& job = jobs.front();
    return {.store = *job.store, .key = job.key, .offset = offset, .length = length, .expect = job.expect};
  }
};

class ObjectAttempt : private HttpSink {
 public:
  explicit ObjectAttempt(const HttpOptions& options) : transfer_(options) {}

  // REQUIRES: `group` lives until the transfer has ended or was stopped.
  void begin(ObjectGroup& group, bool is_hedge, Time now);
  // REQUIRES: the transfer has ended.
  Judgement judge(const HttpEnd& end) const;

  HttpTransfer& transfer() { return transfer_; }
  ObjectGroup& group() const { return *group_; }
  bool is_hedge() const { return is_hedge_; }
  Bytes received() const { return received_; }
  Time heard() const { return heard_; }  // when the last byte came, or the request was sent
  Duration silence() const { return silence_; }

 private:
  bool write(const HttpHead& head, std::span<const std::byte> bytes) override;
  void scatter(std::span<const std::byte> bytes);

  HttpTransfer transfer_;
  ObjectGroup* group_ = nullptr;
  bool is_hedge_ = false;
  std::string url_;
  std::optional<Judgement> head_;  // once the first byte of the body is there
  std::string said_;               // the beginning of an error's text
  Bytes received_ = 0;             // of the body, while the head is right
  Bytes dropped_ = 0;              // of the body of an error
  std::size_t job_ = 0;            // the first one that is not complete
  Time heard_{};
  Duration silence_{};
};

}  // namespace foreload
