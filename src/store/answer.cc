#include "store/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/content_range.h"

namespace foreload {
namespace {

bool is_other(const AskedRange& asked, const FileStamp& found) {
  if (!asked.expect) return false;
  return found.size != asked.expect->size || (asked.expect->mtime_ns != 0 && found.mtime_ns != asked.expect->mtime_ns);
}

Judgement changed(const FileStamp& found) {
  return {.verdict = Verdict::kDoubtful,
          .code = Code::kDataChanged,
          .reason = "the object has changed since it was indexed",
          .is_changed = true,
          .found = found};
}

// The range that was asked for, cut at the object's end.
Judgement judge_part(const HttpHead& head, const AskedRange& asked) {
  const FileStamp found = stamp_of(head.response);
  const auto range = parse_content_range(head.response.content_range);
  if (range && is_other(asked, found)) return changed(found);
  const Bytes end = std::min(asked.offset + asked.length, found.size);
  if (range == ContentRange{asked.offset, end - 1, found.size}) return {.found = found};
  return {.verdict = Verdict::kDoubtful,
          .reason = fmt::format("the server sends other bytes than those asked for (Content-Range \"{}\")",
                                head.response.content_range.substr(0, 80))};
}

Judgement judge_whole(const HttpHead& head, const AskedRange& asked) {
  FileStamp found = stamp_of(head.response);
  const bool is_told = head.response.content_length > 0 || !asked.expect;
  if (!is_told) found.size = asked.expect->size;  // the bytes are counted
  const bool is_all = asked.expect ? asked.length == asked.expect->size : found.size <= asked.length;
  if (asked.offset != 0 || !is_all) {
    return {.verdict = Verdict::kDoubtful,
            .reason = "the server ignores ranges and sends the whole object; use one that supports range requests"};
  }
  return is_other(asked, found) ? changed(found) : Judgement{.found = found};
}

Judgement judge_refusal(const HttpHead& head, const AskedRange& asked) {
  const int status = head.response.status;
  const FileStamp found = stamp_of(head.response);
  if (asked.expect && (status == 404 || status == 410)) {
    return {
        .verdict = Verdict::kFinal, .code = Code::kDataChanged, .reason = "the object is gone since it was indexed"};
  }
  if (asked.expect && (status == 412 || (status == 416 && found.size != asked.expect->size))) return changed(found);
  if (status >= 300 && status < 400) return {.verdict = Verdict::kFinal, .reason = explain_redirect(head)};
  return {.verdict = may_pass(status) ? Verdict::kAgain : Verdict::kFinal,
          .refusal = asked.store.refused(asked.key, head.response),
          .is_throttled = is_throttling(status)};
}

}  // namespace

Judgement judge_head(const HttpHead& head, const AskedRange& asked) {
  const int status = head.response.status;
  if (status != 200 && status != 206) return judge_refusal(head, asked);
  if (is_encoded(head)) return {.verdict = Verdict::kFinal, .reason = explain_encoding(head)};
  return status == 206 ? judge_part(head, asked) : judge_whole(head, asked);
}

}  // namespace foreload
