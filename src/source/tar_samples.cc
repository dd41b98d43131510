// Which folder was archived, when no label members tell? "tar -C data ." writes "./cat/1.jpg": the root is named.
// "tar c data" writes "data/", "data/cat/", "data/cat/1.jpg": the root is the topmost directory around all samples.
// Archives without directory entries: the longest directory that all samples share.
#include "source/tar_samples.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "source/payload.h"

namespace foreload {

namespace {

bool is_below(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() && path.substr(0, directory.size()) == directory &&
         (directory.empty() || path[directory.size()] == '/');
}

std::string_view first_component(std::string_view path) {
  return path.substr(0, path.find('/'));
}

// One group of a shard: takes its main payload, or the first.
std::size_t main_payload(const ShardContent& shard, std::size_t first, std::size_t end, Warnings& warnings) {
  std::size_t mains = 0;
  std::size_t chosen = first;
  for (std::size_t i = first; i < end; ++i) {
    if (shard.payloads[i].is_main && mains++ == 0) chosen = i;
  }
  if (mains > 1 || (mains == 0 && end - first > 1)) {
    warnings.add(Cause::kSeveralPayloads, shard.name(shard.payloads[first]));
  }
  return chosen;
}

void choose_groups(const std::vector<ShardContent>& shards, std::size_t number, TarSamples& chosen,
                   Warnings& warnings) {
  const ShardContent& shard = shards[number];
  auto label = shard.labels.begin();
  for (std::size_t first = 0, end = 0; first < shard.payloads.size(); first = end) {
    const std::uint64_t group = shard.payloads[first].group;
    while (end < shard.payloads.size() && shard.payloads[end].group == group) ++end;
    while (label != shard.labels.end() && label->group < group) ++label;
    TarSample sample{number, main_payload(shard, first, end, warnings), kNoLabel};
    if (label != shard.labels.end() && label->group == group) {
      sample.label = label->label;
    } else {
      warnings.add(Cause::kLabelMissing, shard.name(shard.payloads[first]));
    }
    chosen.samples.push_back(sample);
  }
  if (shard.groups_without_payload > 0) {
    warnings.add(Cause::kNoPayload, shard.group_without_payload, shard.groups_without_payload);
  }
}

// The longest directory around all payloads.
std::string common_directory(const std::vector<ShardContent>& shards) {
  std::string common;
  bool is_first = true;
  for (const ShardContent& shard : shards) {
    for (const ShardMember& member : shard.payloads) {
      const std::string_view name = shard.name(member);
      if (is_first) common = directory_name(name);
      is_first = false;
      while (!common.empty() && !is_below(name, common)) common = directory_name(common);
    }
  }
  return common;
}

std::string archived_folder(const std::vector<ShardContent>& shards) {
  const std::string common = common_directory(shards);
  std::string root = common;
  for (const ShardContent& shard : shards) {
    if (shard.is_rooted) return {};
    for (const std::string& directory : shard.directories) {
      const bool is_around = directory == common || is_below(common, directory);
      if (is_around && directory.size() < root.size()) root = directory;
    }
  }
  return root;
}

// Rank of each class. Directories count as classes even if they are empty, as they would in a folder.
std::map<std::string, std::int64_t, std::less<>> ranked_classes(const std::vector<ShardContent>& shards,
                                                                const TarSamples& chosen, const std::string& root) {
  std::map<std::string, std::int64_t, std::less<>> ranks;
  for (const TarSample& sample : chosen.samples) {
    const std::string_view key = chosen.key(shards, sample);
    const std::string_view name = first_component(key);
    if (name.size() < key.size() && ranks.find(name) == ranks.end()) ranks.emplace(name, 0);
  }
  for (const ShardContent& shard : shards) {
    for (const std::string& directory : shard.directories) {
      if (!is_below(directory, root)) continue;
      const std::string_view path = std::string_view(directory).substr(chosen.root_size);
      if (!is_hidden_path(path)) ranks.emplace(first_component(path), 0);
    }
  }
  std::int64_t rank = 0;
  for (auto& [name, value] : ranks) value = rank++;
  return ranks;
}

// As a folder is walked: class by class, directory by directory, then by name.
bool comes_first(std::string_view a, std::string_view b) {
  if (const int order = first_component(a).compare(first_component(b)); order != 0) return order < 0;
  if (const int order = directory_name(a).compare(directory_name(b)); order != 0) return order < 0;
  return base_name(a) < base_name(b);
}

void drop_files_beside_classes(const std::vector<ShardContent>& shards, TarSamples& chosen, Warnings& warnings) {
  std::erase_if(chosen.samples, [&](const TarSample& sample) {
    const std::string_view key = chosen.key(shards, sample);
    const bool is_beside = key.find('/') == std::string_view::npos;
    if (is_beside) warnings.add(Cause::kBesideClasses, key);
    return is_beside;
  });
}

void label_by_class(const std::vector<ShardContent>& shards, const std::string& root, TarSamples& chosen,
                    Warnings& warnings) {
  const auto ranks = ranked_classes(shards, chosen, root);
  std::set<std::int64_t> used;
  for (TarSample& sample : chosen.samples) {
    sample.label = ranks.find(first_component(chosen.key(shards, sample)))->second;
    used.insert(sample.label);
  }
  for (const auto& [name, rank] : ranks) {
    chosen.classes.push_back(name);
    if (used.count(rank) == 0) warnings.add(Cause::kEmptyClass, name);
  }
}

TarSamples choose_as_folder(const std::vector<ShardContent>& shards, Warnings& warnings) {
  TarSamples chosen;
  const std::string root = archived_folder(shards);
  chosen.root_size = root.empty() ? 0 : root.size() + 1;
  bool has_classes = false;
  for (std::size_t number = 0; number < shards.size(); ++number) {
    const ShardContent& shard = shards[number];
    if (shard.other_files > 0) warnings.add(Cause::kOtherExtension, shard.other_file, shard.other_files);
    for (std::size_t i = 0; i < shard.payloads.size(); ++i) {
      const TarSample sample{number, i, kNoLabel};
      const std::string_view key = chosen.key(shards, sample);
      if (is_hidden_path(key)) continue;
      chosen.samples.push_back(sample);
      has_classes |= key.find('/') != std::string_view::npos;
    }
  }
  if (has_classes) {
    drop_files_beside_classes(shards, chosen, warnings);
    label_by_class(shards, root, chosen, warnings);
  }
  // Stable: the same name twice stays in the order of the archive.
  std::stable_sort(chosen.samples.begin(), chosen.samples.end(), [&](const TarSample& a, const TarSample& b) {
    return comes_first(chosen.key(shards, a), chosen.key(shards, b));
  });
  return chosen;
}

void warn_of_same_keys(const std::vector<ShardContent>& shards, const TarSamples& chosen, Warnings& warnings) {
  std::vector<std::pair<std::uint64_t, std::size_t>> hashes;
  for (std::size_t i = 0; i < chosen.samples.size(); ++i) {
    const std::string_view key = chosen.key(shards, chosen.samples[i]);
    hashes.emplace_back(hash_bytes(std::as_bytes(std::span(key))), i);
  }
  std::sort(hashes.begin(), hashes.end());
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i].first != hashes[i - 1].first) continue;
    const std::string_view key = chosen.key(shards, chosen.samples[hashes[i].second]);
    if (key == chosen.key(shards, chosen.samples[hashes[i - 1].second])) warnings.add(Cause::kSameKey, key);
  }
}

}  // namespace

std::string_view TarSamples::key(const std::vector<ShardContent>& shards, const TarSample& sample) const {
  const ShardContent& shard = shards[sample.shard];
  return shard.name(shard.payloads[sample.payload]).substr(root_size);
}

TarSamples choose_samples(const std::vector<ShardContent>& shards, Warnings& warnings) {
  TarSamples chosen;
  if (std::any_of(shards.begin(), shards.end(), [](const ShardContent& shard) { return shard.has_label_members; })) {
    for (std::size_t number = 0; number < shards.size(); ++number) choose_groups(shards, number, chosen, warnings);
  } else {
    chosen = choose_as_folder(shards, warnings);
  }
  warn_of_same_keys(shards, chosen, warnings);
  return chosen;
}

}  // namespace foreload
