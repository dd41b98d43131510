// Both lists are reduced to pairs (hash of the key, hash of the rest), sorted and merged. A key that is there more than
// once is matched as often as both have it.
#include "source/index_changes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/text.h"

namespace foreload {

namespace {

using Entry = std::pair<std::uint64_t, std::uint64_t>;

std::vector<Entry> entries_of(const IndexView& index) {
  std::vector<Entry> entries;
  entries.reserve(index.size());
  for (SampleId id = 0; id < index.size(); ++id) {
    const std::string key = index.key(id);
    const std::array<std::uint64_t, 2> rest{
        index.length(id), index.kind() == IndexKind::kFolder ? static_cast<std::uint64_t>(index.mtime_ns(id)) : 0};
    entries.emplace_back(hash_bytes(std::as_bytes(std::span(key))), hash_bytes(std::as_bytes(std::span(rest))));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

std::string IndexChanges::text() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (added > 0) add("+" + counted(added, "sample"));
  if (removed > 0) add("-" + (added > 0 ? format_count(removed) : counted(removed, "sample")));
  if (changed > 0) add((added + removed > 0 ? format_count(changed) : counted(changed, "sample")) + " changed");
  return text;
}

IndexChanges compare_indexes(const IndexView& before, const IndexView& after) {
  const std::vector<Entry> old = entries_of(before);
  const std::vector<Entry> now = entries_of(after);
  IndexChanges changes;
  auto was = old.begin();
  auto is = now.begin();
  while (was != old.end() && is != now.end()) {
    const bool same_key = was->first == is->first;
    changes.changed += same_key && was->second != is->second ? 1 : 0;
    const bool is_gone = !same_key && was->first < is->first;
    changes.removed += is_gone ? 1 : 0;
    changes.added += !same_key && !is_gone ? 1 : 0;
    if (same_key || is_gone) ++was;
    if (same_key || !is_gone) ++is;
  }
  changes.removed += static_cast<std::uint64_t>(old.end() - was);
  changes.added += static_cast<std::uint64_t>(now.end() - is);
  return changes;
}

}  // namespace foreload
