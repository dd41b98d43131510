// What the head of an answer is worth: the one place that compares it with what was asked for. Nothing of an answer is
// believed before. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "foreload/result.h"
#include "foreload/source.h"
#include "store/http_transfer.h"
#include "store/object_store.h"

namespace foreload {

enum class Verdict {
  kComplete,  // every byte is in its place; of a head: the bytes that follow are those asked for
  kAgain,     // may pass
  kDoubtful,  // no answer to what was asked: perhaps of one server among many, so it is asked again, but not often
  kFinal,
};

struct Judgement {
  Verdict verdict = Verdict::kComplete;
  Code code = Code::kIo;
  std::string reason{};            // does not name the object
  std::optional<Error> refusal{};  // the store's own words, complete; instead of code and reason
  bool is_changed = false;         // it is another object than the one that was expected
  FileStamp found{};               // of a complete one, or one that has changed
  bool is_throttled = false;
};

struct AskedRange {
  const ObjectStore& store;
  std::string_view key;
  Bytes offset = 0;
  Bytes length = 0;
  // What the index says of the object: then the range lies inside of it. Nothing: it is met for the first time, and
  // the range may end behind it.
  std::optional<FileStamp> expect{};
};

// `head` may have the beginning of a refusal's body.
Judgement judge_head(const HttpHead& head, const AskedRange& asked);

}  // namespace foreload
