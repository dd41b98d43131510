// Warnings: what was skipped or doubtful while a dataset was indexed. One line per cause, with the number of cases
// and the least of them in byte order, so that the text does not depend on which thread came first.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace foreload {

enum class Cause {
  kOtherExtension,
  kBesideClasses,  // a file at the top of a folder that has classes
  kEmptyClass,
  kLinkOutside,
  kLinkBroken,
  kLoop,
  kTooDeep,
  kSpecialFile,
  kNameTooLong,
  kVanished,
  kTarLink,
  kTarSpecial,
  kTarSparse,
  kTarName,
  kTruncated,
  kNoEndMark,
  kNoPayload,
  kSeveralPayloads,
  kLabelMissing,
  kLabelUnreadable,
  kSameKey,
  kObjectName,
};

class Warnings {
 public:
  void add(Cause cause, std::string_view example, std::uint64_t cases = 1);  // any thread
  std::uint64_t count(Cause cause) const;
  // "12 files ignored, their extension is none of …: first is notes.txt"
  std::vector<std::string> lines() const;

 private:
  struct Case {
    std::uint64_t count = 0;
    std::string example;
  };
  mutable Mutex mutex_;
  std::map<Cause, Case> cases_ FORELOAD_GUARDED_BY(mutex_);
};

// For messages: control characters as \xNN, long texts shortened.
std::string printable(std::string_view text, std::size_t longest = 300);

}  // namespace foreload
