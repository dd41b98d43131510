#include "source/warnings.h"

#include <fmt/core.h>

#include "base/text.h"
#include "source/payload.h"

namespace foreload {

namespace {

std::string describe(Cause cause) {
  switch (cause) {
    case Cause::kOtherExtension:
      return "files ignored, their extension is none of " + payload_extensions();
    case Cause::kBesideClasses:
      return "files beside the class folders ignored";
    case Cause::kEmptyClass:
      return "class folders without samples";
    case Cause::kLinkOutside:
      return "links refused because they lead outside of the dataset";
    case Cause::kLinkBroken:
      return "links skipped because they lead nowhere";
    case Cause::kLoop:
      return "links skipped because they lead back to a folder around them";
    case Cause::kTooDeep:
      return "folders skipped because they are nested too deeply";
    case Cause::kSpecialFile:
      return "devices, pipes and sockets skipped";
    case Cause::kNameTooLong:
      return "entries skipped because their path is too long";
    case Cause::kVanished:
      return "files skipped because they vanished during the scan";
    case Cause::kTarLink:
      return "links in tars skipped";
    case Cause::kTarSpecial:
      return "entries of other types in tars skipped";
    case Cause::kTarSparse:
      return "sparse files in tars skipped (pack them without --sparse)";
    case Cause::kTarName:
      return "tar entries skipped because of their name (\"..\", NUL, empty or longer than 4096 bytes)";
    case Cause::kTruncated:
      return "tars end in the middle of an entry, which is lost (copy the shard again)";
    case Cause::kNoEndMark:
      return "tars end without their end mark: they may be cut";
    case Cause::kNoPayload:
      return "groups in tars skipped because none of their members is " + payload_extensions();
    case Cause::kSeveralPayloads:
      return "groups in tars have several samples, the first is taken";
    case Cause::kLabelMissing:
      return "samples without label";
    case Cause::kLabelUnreadable:
      return "label members that hold no integer, taken as no label";
    case Cause::kSameKey:
      return "keys are there more than once, all are kept";
  }
  return "unknown cause";
}

}  // namespace

void Warnings::add(Cause cause, std::string_view example, std::uint64_t cases) {
  MutexLock lock(mutex_);
  Case& known = cases_[cause];
  if (known.count == 0 || example < known.example) known.example = example;
  known.count += cases;
}

std::uint64_t Warnings::count(Cause cause) const {
  MutexLock lock(mutex_);
  const auto found = cases_.find(cause);
  return found == cases_.end() ? 0 : found->second.count;
}

std::vector<std::string> Warnings::lines() const {
  MutexLock lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& [cause, known] : cases_) {
    lines.push_back(
        fmt::format("{} {}: first is {}", format_count(known.count), describe(cause), printable(known.example)));
  }
  return lines;
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string shown;
  unsigned char before = 0;
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    // The controls of Latin-1 are two bytes in UTF-8: the second is shown as its number.
    const bool is_control = byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0);
    shown += is_control ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    before = byte;
  }
  return text.size() > longest ? shown + "…" : shown;
}

}  // namespace foreload
