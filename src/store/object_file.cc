#include "store/object_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "store/answer.h"

namespace foreload {
namespace {

constexpr Bytes kRoomForErrors = 64_KiB;  // a server's explanation may be longer than the part that was asked for
constexpr Bytes kWindow = 256_KiB;
constexpr Bytes kSmallGap = 64_KiB;  // a request costs more than reading so much for nothing
constexpr Bytes kHeaders = 4_KiB;    // a tar header, a label beside it and the next header
constexpr Bytes kStep = 8_MiB;       // of a whole object at once

Error wrong_answer(const ObjectStore& store, std::string_view key, const std::string& how) {
  return {Code::kIo, fmt::format("{}: the server's answer is wrong: {}", store.display(key), how)};
}

Error changed(const ObjectStore& store, std::string_view key) {
  return {Code::kDataChanged,
          fmt::format("{} was changed while it was read: try again when it is complete", store.display(key))};
}

// The object is met for the first time; its body is complete.
Result<ObjectPart> checked_part(const AskedRange& asked, HttpResponse response) {
  if (response.status == 200) {
    response.content_range.clear();
    response.content_length = response.body.size();
  }
  HttpHead head{.response = std::move(response)};
  const Judgement judgement = judge_head(head, asked);
  if (judgement.refusal) return *judgement.refusal;
  if (judgement.verdict != Verdict::kComplete) return wrong_answer(asked.store, asked.key, judgement.reason);
  std::string bytes = std::move(head.response.body);
  const Bytes promised = std::min(asked.length, judgement.found.size - asked.offset);
  if (bytes.size() == promised) return ObjectPart{judgement.found, std::move(bytes)};
  return wrong_answer(asked.store, asked.key, fmt::format("{} bytes where it promised {}", bytes.size(), promised));
}

// No range of an empty object can be answered; but that a range is refused does not make an object empty.
Status check_empty(const ObjectStore& store, HttpClient& client, std::string_view key, const HttpResponse& refusal) {
  FileStamp told = stamp_of(refusal);
  if (refusal.content_range.empty()) {
    FORELOAD_ASSIGN(const HttpResponse head, client.send([&] { return store.head(key); }, kRoomForErrors));
    if (head.status != 200) return store.refused(key, refusal);
    told = stamp_of(head);
  }
  if (told.size == 0) return {};
  return wrong_answer(store, key,
                      fmt::format("it refuses the first bytes (status 416) of an object of {} bytes", told.size));
}

}  // namespace

Result<ObjectPart> read_part(const ObjectStore& store, HttpClient& client, std::string_view key, Bytes offset,
                             Bytes length) {
  FORELOAD_ASSIGN(HttpResponse response,
                  client.send([&] { return store.get(key, offset, length); }, std::max(length, kRoomForErrors)));
  if (response.status == 416) {
    if (offset > 0) return changed(store, key);
    FORELOAD_TRY(check_empty(store, client, key, response));
    return ObjectPart{};
  }
  return checked_part({.store = store, .key = key, .offset = offset, .length = length}, std::move(response));
}

Result<FileStamp> stamp_of_object(const ObjectStore& store, HttpClient& client, std::string_view key) {
  FORELOAD_ASSIGN(const HttpResponse response, client.send([&] { return store.head(key); }, kRoomForErrors));
  // Servers that make their answers up need not know HEAD, or lengths.
  const bool says_nothing =
      response.status == 405 || response.status == 501 || (response.status == 200 && response.content_length == 0);
  if (says_nothing) {
    FORELOAD_ASSIGN(const ObjectPart part, read_part(store, client, key, 0, 1));
    return part.stamp;
  }
  if (response.status != 200) return store.refused(key, response);
  return stamp_of(response);
}

Result<std::string> read_whole_object(const ObjectStore& store, HttpClient& client, std::string_view key, Bytes limit) {
  FORELOAD_ASSIGN(ObjectPart whole, read_part(store, client, key, 0, kStep));
  if (whole.stamp.size > limit) {
    return Error{Code::kInvalid,
                 fmt::format("{} is longer than the {} allowed here", store.display(key), format_bytes(limit))};
  }
  while (whole.bytes.size() < whole.stamp.size) {  // ends: every part has at least one byte
    FORELOAD_ASSIGN(const ObjectPart part, read_part(store, client, key, whole.bytes.size(), kStep));
    if (part.stamp != whole.stamp) return changed(store, key);
    whole.bytes += part.bytes;
  }
  return std::move(whole.bytes);
}

Result<ObjectFile> ObjectFile::open(const ObjectStore& store, HttpClient& client, std::string key) {
  ObjectFile file(store, client, std::move(key));
  FORELOAD_ASSIGN(ObjectPart part, read_part(store, client, file.key_, 0, kHeaders));
  file.stamp_ = part.stamp;
  file.window_ = std::move(part.bytes);
  return file;
}

Status ObjectFile::fetch(Bytes offset, Bytes length) {
  FORELOAD_ASSIGN(ObjectPart part, read_part(*store_, *client_, key_, offset, length));
  if (part.stamp != stamp_) return changed(*store_, key_);
  window_ = std::move(part.bytes);
  window_at_ = offset;
  return {};
}

Result<std::size_t> ObjectFile::read_at(Bytes offset, std::span<std::byte> into) {
  if (offset >= stamp_.size || into.empty()) return std::size_t{0};
  const std::size_t there = std::min<Bytes>(into.size(), stamp_.size - offset);
  // One large gap among small ones, as labels beside pictures make them, counts for the next few as well.
  if (offset != last_end_) gap_ = std::max(offset - std::min(offset, last_end_), gap_ / 8 * 7);
  last_end_ = offset + there;
  const bool is_inside = offset >= window_at_ && last_end_ <= window_at_ + window_.size();
  if (!is_inside) FORELOAD_TRY(fetch(offset, std::max<Bytes>(there, gap_ > kSmallGap ? kHeaders : kWindow)));
  std::memcpy(into.data(), window_.data() + (offset - window_at_), there);
  return there;
}

}  // namespace foreload
