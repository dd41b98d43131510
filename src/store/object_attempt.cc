#include "store/object_attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "store/content_range.h"

namespace foreload {
namespace {

constexpr Bytes kLongestText = 4_KiB;    // of an error that is looked at
constexpr Bytes kLongestError = 64_KiB;  // of an error that is read, so that the connection can be used again

bool is_same(const FileStamp& expect, const FileStamp& found) {
  return found.size == expect.size && (expect.mtime_ns == 0 || found.mtime_ns == expect.mtime_ns);
}

Judgement changed(const FileStamp& found) {
  return {.verdict = Verdict::kDoubtful,
          .code = Code::kDataChanged,
          .reason = "the object has changed since it was indexed",
          .is_changed = true,
          .found = found};
}

Judgement judge_part(const HttpHead& head, const ObjectGroup& group) {
  const FileStamp found = stamp_of(head.response);
  const auto range = parse_content_range(head.response.content_range);
  if (range && !is_same(group.jobs.front().expect, found)) return changed(found);
  const ContentRange asked{group.offset, group.offset + group.length - 1, group.jobs.front().expect.size};
  if (range == asked) return {};
  return {.verdict = Verdict::kDoubtful,
          .reason = fmt::format("the server sends other bytes than those asked for (Content-Range \"{}\")",
                                head.response.content_range.substr(0, 80))};
}

Judgement judge_whole(const HttpHead& head, const ObjectGroup& group) {
  const FileStamp& expect = group.jobs.front().expect;
  if (group.offset != 0 || group.length != expect.size) {
    return {.verdict = Verdict::kDoubtful,
            .reason = "the server ignores ranges and sends the whole object; use one that supports range requests"};
  }
  FileStamp found = stamp_of(head.response);
  if (head.response.content_length == 0) found.size = expect.size;  // not told; the bytes are counted
  return is_same(expect, found) ? Judgement{} : changed(found);
}

Judgement judge_error(const HttpHead& head, const ObjectGroup& group) {
  const int status = head.response.status;
  if (status == 404 || status == 410) {
    return {
        .verdict = Verdict::kFinal, .code = Code::kDataChanged, .reason = "the object is gone since it was indexed"};
  }
  const FileStamp found = stamp_of(head.response);
  if (status == 412 || (status == 416 && found.size != group.jobs.front().expect.size)) return changed(found);
  if (status >= 300 && status < 400) return {.verdict = Verdict::kFinal, .reason = explain_redirect(head)};
  const ObjectJob& job = group.jobs.front();
  return {.verdict = may_pass(status) ? Verdict::kAgain : Verdict::kFinal,
          .refusal = job.store->refused(job.key, head.response),
          .is_throttled = is_throttling(status)};
}

}  // namespace

Judgement judge_head(const HttpHead& head, const ObjectGroup& group) {
  const int status = head.response.status;
  if (status != 200 && status != 206) return judge_error(head, group);
  if (!head.content_encoding.empty() && head.content_encoding != "identity") {
    return {.verdict = Verdict::kFinal,
            .reason = fmt::format("the server sends content encoding {}, which was not asked for; switch it off there",
                                  head.content_encoding.substr(0, 40))};
  }
  return status == 206 ? judge_part(head, group) : judge_whole(head, group);
}

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
  if (!head_) head_ = judge_head(head, *group_);
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
  if (!head_ || head_->verdict != Verdict::kComplete) {
    HttpHead head = transfer_.head();
    head.response.body = said_;
    return judge_head(head, *group_);
  }
  if (end.trouble == HttpTrouble::kStopped) {
    return {.verdict = Verdict::kDoubtful, .reason = "the server sends more bytes than it promised"};
  }
  if (end.trouble == HttpTrouble::kNone && received_ == group_->length) return {};
  std::string reason = fmt::format("the answer ended after {} of {} bytes", received_, group_->length);
  if (end.trouble != HttpTrouble::kNone) reason = fmt::format("{}: {}", reason, explain(end, url_));
  return {.verdict = Verdict::kAgain, .reason = std::move(reason)};
}

}  // namespace foreload
