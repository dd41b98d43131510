#include "source/warnings.h"

#include <fmt/core.h>

#include "base/text.h"
#include "source/payload.h"

namespace foreload {

namespace {

// With "[one case|several cases]" where the number matters.
std::string describe(Cause cause) {
  switch (cause) {
    case Cause::kOtherExtension:
      return "[file|files] ignored, [its|their] extension is none of " + payload_extensions();
    case Cause::kBesideClasses:
      return "[file|files] beside the class folders ignored";
    case Cause::kEmptyClass:
      return "class [folder|folders] without samples";
    case Cause::kLinkOutside:
      return "[link|links] refused because [it leads|they lead] outside of the dataset";
    case Cause::kLinkBroken:
      return "[link|links] skipped because [it leads|they lead] nowhere";
    case Cause::kLoop:
      return "[link|links] skipped because [it leads|they lead] back to a folder around [it|them]";
    case Cause::kTooDeep:
      return "[folder|folders] skipped because [it is|they are] nested too deeply";
    case Cause::kSpecialFile:
      return "[device, pipe or socket|devices, pipes and sockets] skipped";
    case Cause::kNameTooLong:
      return "[entry|entries] skipped because [its|their] path is too long";
    case Cause::kVanished:
      return "[file|files] skipped because [it|they] vanished during the scan";
    case Cause::kTarLink:
      return "[link|links] in tars skipped";
    case Cause::kTarSpecial:
      return "[entry|entries] of [another type|other types] in tars skipped";
    case Cause::kTarSparse:
      return "sparse [file|files] in tars skipped (pack [it|them] without --sparse)";
    case Cause::kTarName:
      return "tar [entry|entries] skipped because of [its|their] name (\"..\", NUL, empty or longer than 4096 bytes)";
    case Cause::kTruncated:
      return "[tar ends|tars end] in the middle of an entry, which is lost (copy the shard again)";
    case Cause::kNoEndMark:
      return "[tar ends without its|tars end without their] end mark: [it|they] may be cut";
    case Cause::kNoPayload:
      return "[group|groups] in tars skipped because none of [its|their] members is " + payload_extensions();
    case Cause::kSeveralPayloads:
      return "[group in tars has|groups in tars have] several samples, the first is taken";
    case Cause::kLabelMissing:
      return "[sample|samples] without label";
    case Cause::kLabelUnreadable:
      return "label [member that holds|members that hold] no integer, taken as no label";
    case Cause::kSameKey:
      return "[key is|keys are] there more than once, all are kept";
    case Cause::kObjectName:
      return "[object|objects] skipped because [its|their] key is no path (\"..\", \"//\" or a NUL in it)";
  }
  return "unknown cause";
}

// Chooses in every "[one|many]".
std::string in_number(std::string_view text, std::uint64_t count) {
  std::string chosen;
  for (std::size_t open = text.find('['); open != std::string_view::npos; open = text.find('[')) {
    const std::size_t bar = text.find('|', open);
    const std::size_t close = text.find(']', open);
    chosen += text.substr(0, open);
    chosen += count == 1 ? text.substr(open + 1, bar - open - 1) : text.substr(bar + 1, close - bar - 1);
    text.remove_prefix(close + 1);
  }
  return chosen.append(text);
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
    lines.push_back(fmt::format("{} {}: {}{}", format_count(known.count), in_number(describe(cause), known.count),
                                known.count == 1 ? "" : "first is ", printable(known.example)));
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
