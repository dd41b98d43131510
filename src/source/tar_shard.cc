#include "source/tar_shard.h"

#include <fmt/core.h>

#include <utility>

#include "source/name_table.h"
#include "source/payload.h"
#include "source/tar_label.h"

namespace foreload {

namespace {

struct SplitName {
  std::string_view key;        // up to the first dot of the basename
  std::string_view extension;  // what follows it
};

SplitName split(std::string_view name) {
  const std::size_t dot = name.find('.', name.rfind('/') + 1);
  if (dot == std::string_view::npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

class ShardScan {
 public:
  ShardScan(const ReadAt& read_at, const ShardScanOptions& options, Warnings& warnings)
      : read_at_(read_at), options_(options), warnings_(warnings) {}

  Status take(const TarMember& member);
  ShardContent finish() &&;

 private:
  std::string shown(std::string_view name) const { return fmt::format("{}: {}", options_.display, name); }
  Status take_file(const std::string& name, const TarMember& member);
  Status take_label(const std::string& name, std::string_view extension, const TarMember& member);
  void enter_group(std::string_view key);
  void leave_group();
  void note_other(const std::string& name);

  const ReadAt& read_at_;
  const ShardScanOptions& options_;
  Warnings& warnings_;
  ShardContent content_;
  std::string key_;  // of the current group
  std::uint64_t group_ = 0;
  bool has_group_ = false;
  bool has_payload_ = false;
};

void ShardScan::leave_group() {
  if (!has_group_ || has_payload_) return;
  if (content_.groups_without_payload++ == 0) content_.group_without_payload = shown(key_);
}

void ShardScan::enter_group(std::string_view key) {
  if (has_group_ && key == key_) return;
  leave_group();
  if (has_group_) ++group_;
  key_ = key;
  has_group_ = true;
  has_payload_ = false;
}

void ShardScan::note_other(const std::string& name) {
  if (content_.other_files++ == 0) content_.other_file = shown(name);
}

Status ShardScan::take_label(const std::string& name, std::string_view extension, const TarMember& member) {
  FoundLabel found{extension == "cls", std::nullopt};
  if (member.size <= kMaxLabelBytes) {
    std::string text(member.size, '\0');
    FORELOAD_ASSIGN(const std::size_t got, read_at_(member.offset, std::as_writable_bytes(std::span(text))));
    text.resize(got);
    found = extension == "cls" ? label_of_cls(text) : label_of_json(text, options_.label_field);
  }
  if (!found.has_field) {
    note_other(name);
    return {};
  }
  content_.has_label_members = true;
  const bool is_known = !content_.labels.empty() && content_.labels.back().group == group_;
  if (!found.value) {
    warnings_.add(Cause::kLabelUnreadable, shown(name));
  } else if (!is_known) {
    content_.labels.push_back({group_, *found.value});
  } else if (extension == "cls") {  // says it more plainly than JSON
    content_.labels.back().label = *found.value;
  }
  return {};
}

Status ShardScan::take_file(const std::string& name, const TarMember& member) {
  if (base_name(name).front() == '.') return {};
  const auto [key, extension] = split(name);
  enter_group(key);
  if (extension == "cls" || extension == "json") return take_label(name, extension, member);
  if (!is_payload_name(base_name(name))) {
    note_other(name);
    return {};
  }
  has_payload_ = true;
  if (options_.progress != nullptr) ++options_.progress->done;
  content_.payloads.push_back(
      {content_.names.size(), name.size(), group_, member.offset, member.size, is_payload_extension(extension)});
  content_.names += name;
  return {};
}

Status ShardScan::take(const TarMember& member) {
  if (member.type == TarType::kLink) warnings_.add(Cause::kTarLink, shown(member.name));
  if (member.type == TarType::kSparse) warnings_.add(Cause::kTarSparse, shown(member.name));
  if (member.type == TarType::kSpecial) warnings_.add(Cause::kTarSpecial, shown(member.name));
  if (member.type != TarType::kFile && member.type != TarType::kDirectory) return {};
  std::optional<std::string> name = plain_member_name(member.name);
  const bool is_directory = member.type == TarType::kDirectory;
  if (!name || (name->empty() && !is_directory)) {
    warnings_.add(Cause::kTarName, shown(member.name));
    return {};
  }
  content_.is_rooted |= name->empty() || member.name.substr(0, 2) == "./";
  if (!is_directory) return take_file(*name, member);
  if (!name->empty()) content_.directories.push_back(std::move(*name));
  return {};
}

ShardContent ShardScan::finish() && {
  leave_group();
  return std::move(content_);
}

}  // namespace

std::optional<std::string> plain_member_name(std::string_view name) {
  std::string plain;
  if (name.find('\0') != std::string_view::npos) return std::nullopt;
  while (!name.empty()) {
    const std::size_t slash = std::min(name.find('/'), name.size());
    const std::string_view component = name.substr(0, slash);
    if (component == "..") return std::nullopt;
    if (!component.empty() && component != ".") plain.append(plain.empty() ? "" : "/").append(component);
    name.remove_prefix(std::min(slash + 1, name.size()));
  }
  if (plain.size() >= kMaxNameLength) return std::nullopt;
  return plain;
}

Result<ShardContent> scan_shard(const ReadAt& read_at, Bytes size, const ShardScanOptions& options,
                                Warnings& warnings) {
  TarReader reader(read_at, size);
  ShardScan scan(read_at, options, warnings);
  for (;;) {  // ends: every member takes at least one block
    FORELOAD_ASSIGN(const std::optional<TarMember> member, reader.next());
    if (!member) break;
    FORELOAD_TRY(scan.take(*member));
  }
  if (reader.truncated()) {
    warnings.add(Cause::kTruncated, fmt::format("{}: {}", options.display, *reader.truncated()));
  } else if (reader.is_unmarked()) {
    warnings.add(Cause::kNoEndMark, fmt::format("{}: after {}", options.display, reader.last_name()));
  }
  return std::move(scan).finish();
}

}  // namespace foreload
