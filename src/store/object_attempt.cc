#include "store/object_attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace foreload {
namespace {

constexpr Bytes kLongestText = 4_KiB;    // of an error that is looked at
constexpr Bytes kLongestError = 64_KiB;  // of an error that is read, so that the connection can be used again

}  // namespace

void ObjectAttempt::begin(ObjectGroup& group, bool is_hedge, Time now) {
  const ObjectJob& job = group.jobs.front();
  const HttpRequest request = job.store->get(job.key, group.offset, group.length);
  group_ = &group;
  is_hedge_ = is_hedge;
  url_ = request.url;
  head_.reset();
  said_.clear();
  received_ = dropped_ = 0;
  job_ = 0;
  heard_ = now;
  silence_ = {};
  transfer_.prepare(request, *this);
}

bool ObjectAttempt::write(const HttpHead& head, std::span<const std::byte> bytes) {
  const Time current = now();
  silence_ = std::max(silence_, current - heard_);
  heard_ = current;
  if (!head_) head_ = judge_head(head, group_->asked());
  if (head_->verdict == Verdict::kComplete) {
    if (bytes.size() > group_->length - received_) return false;
    scatter(bytes);
    return true;
  }
  dropped_ += bytes.size();
  const Bytes room = kLongestText - said_.size();
  said_.append(reinterpret_cast<const char*>(bytes.data()), std::min<Bytes>(room, bytes.size()));
  return dropped_ <= kLongestError;
}

void ObjectAttempt::scatter(std::span<const std::byte> bytes) {
  Bytes at = group_->offset + received_;
  received_ += bytes.size();
  while (!bytes.empty() && job_ < group_->jobs.size()) {
    const ObjectJob& job = group_->jobs[job_];
    if (at < job.offset) {
      const Bytes gap = std::min<Bytes>(job.offset - at, bytes.size());
      bytes = bytes.subspan(gap);
      at += gap;
      continue;
    }
    const Bytes done = at - job.offset;
    const Bytes count = std::min<Bytes>(job.into.size() - done, bytes.size());
    std::memcpy(job.into.data() + done, bytes.data(), count);
    bytes = bytes.subspan(count);
    at += count;
    if (done + count == job.into.size()) ++job_;
  }
}

Judgement ObjectAttempt::judge(const HttpEnd& end) const {
  const bool is_answered = head_ || end.trouble == HttpTrouble::kNone;
  if (!is_answered) {
    const bool is_final = end.trouble == HttpTrouble::kBadUrl || end.trouble == HttpTrouble::kTls;
    return {.verdict = is_final ? Verdict::kFinal : Verdict::kAgain, .reason = explain(end, url_)};
  }
  HttpHead head = transfer_.head();
  head.response.body = said_;
  Judgement judgement = judge_head(head, group_->asked());
  if (judgement.verdict != Verdict::kComplete) return judgement;
  if (end.trouble == HttpTrouble::kStopped) {
    return {.verdict = Verdict::kDoubtful, .reason = "the server sends more bytes than it promised"};
  }
  if (end.trouble == HttpTrouble::kNone && received_ == group_->length) return {};
  std::string reason = fmt::format("the answer ended after {} of {} bytes", received_, group_->length);
  if (end.trouble != HttpTrouble::kNone) reason = fmt::format("{}: {}", reason, explain(end, url_));
  return {.verdict = Verdict::kAgain, .reason = std::move(reason)};
}

}  // namespace foreload
