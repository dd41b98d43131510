// As torchvision's ImageFolder does: classes are the top-level folders in byte order, the label is the rank; inside a
// class, folders in the order of their paths, inside a folder files in byte order. A folder without class folders is
// flat: no labels.
#include "source/folder_index.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/text.h"
#include "source/index_builder.h"

namespace foreload {

namespace {

std::uint64_t files_there(const ScannedFolder& folder) {
  std::uint64_t count = 0;
  for (const FileFacts& file : folder.stats) count += file.is_there ? 1 : 0;
  return count;
}

std::uint64_t files_there(const ScannedClass& each) {
  std::uint64_t count = 0;
  for (const ScannedFolder& folder : each.folders) count += files_there(folder);
  return count;
}

std::uint64_t folders_with_files(const ScannedClass& each) {
  std::uint64_t count = 0;
  for (const ScannedFolder& folder : each.folders) count += files_there(folder) > 0 ? 1 : 0;
  return count;
}

// Who gives the folder around train/ and val/ gets these as classes. A class with one folder of files in it is usual in
// some datasets, a class with several and no files of its own is not. Empty: nothing is suspicious.
std::string doubt_of_level(const std::vector<ScannedClass>& classes) {
  std::uint64_t filled = 0;
  bool all_hold_classes = true;
  std::string first;
  for (const ScannedClass& each : classes) {
    if (files_there(each) == 0) continue;
    if (filled++ == 0) first = each.name;
    const bool holds_classes = files_there(each.folders[0]) == 0 && folders_with_files(each) > 1;
    all_hold_classes = all_hold_classes && holds_classes;
  }
  if (filled == 1) return fmt::format("1 class holds all samples: is its folder {} meant?", printable(first));
  if (filled == 0 || !all_hold_classes) return {};
  return fmt::format("all {} classes hold folders and no files: is one of them meant, as {}?", format_count(filled),
                     printable(first));
}

void add_folder(IndexBuilder& builder, const ScannedFolder& folder, std::int64_t label) {
  const std::uint64_t directory = builder.add_directory(folder.path, folder.facts.mtime_ns, folder.facts.listing);
  for (std::size_t i = 0; i < folder.files.size(); ++i) {
    const FileFacts& file = folder.stats[i];
    if (!file.is_there) continue;
    builder.add({.directory = directory,
                 .name = folder.files[i],
                 .length = file.length,
                 .label = label,
                 .mtime_ns = file.mtime_ns});
  }
}

}  // namespace

std::optional<std::vector<std::byte>> index_of_folder(FolderScan found, std::int64_t scan_time_ns, Warnings& warnings) {
  std::uint64_t in_classes = 0;
  for (const ScannedClass& each : found.classes) in_classes += files_there(each);
  const std::uint64_t at_top = files_there(found.root);
  const bool is_flat = in_classes == 0;
  if (in_classes + at_top == 0) return std::nullopt;
  if (!is_flat && at_top > 0) {
    warnings.add(Cause::kBesideClasses, found.root.files[0], at_top);
    found.root.files = NameList();
  }
  IndexBuilder builder(IndexKind::kFolder, is_flat ? at_top : in_classes, scan_time_ns);
  add_folder(builder, found.root, kNoLabel);
  std::int64_t label = 0;
  for (const ScannedClass& each : found.classes) {
    if (files_there(each) == 0) warnings.add(Cause::kEmptyClass, each.name);
    if (!is_flat) builder.add_class(each.name);
    for (const ScannedFolder& folder : each.folders) add_folder(builder, folder, label);
    ++label;
  }
  for (const std::string& line : warnings.lines()) builder.add_note(line);
  if (const std::string doubt = doubt_of_level(found.classes); !doubt.empty()) builder.add_note(doubt);
  return std::move(builder).finish();
}

}  // namespace foreload
