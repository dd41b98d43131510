#include "probe/doctor_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "foreload/loader.h"
#include "source/local_source.h"
#include "source/warnings.h"

namespace foreload {

namespace {

constexpr Bytes kHugeAtLeast = 8_MiB;
constexpr std::uint64_t kFarFromMedian = 100;
constexpr std::uint64_t kUnbalanced = 10;  // the largest class has so many times the smallest
constexpr Bytes kSmallFile = 16_KiB;       // requests, not bytes, are what it costs
constexpr std::uint64_t kManyFiles = 10'000;

void count(Cases& cases, const Source& source, SampleId id) {
  if (cases.count++ == 0) cases.example = printable(source.key(id));
}

Bytes median_length(const Source& source) {
  std::vector<Bytes> lengths(source.size());
  for (SampleId id = 0; id < source.size(); ++id) lengths[id] = source.length(id);
  if (lengths.empty()) return 0;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

void look_at_classes(const Source& source, DatasetView& view) {
  std::map<std::int64_t, std::uint64_t> sizes;
  for (SampleId id = 0; id < source.size(); ++id) {
    const std::int64_t label = source.label(id);
    if (label == kNoLabel) {
      ++view.unlabelled;
    } else {
      ++sizes[label];
    }
  }
  view.classes = sizes.size();
  if (sizes.empty()) return;
  const std::vector<std::string> names = source.classes();
  const auto named = [&](const auto& entry) {
    const auto label = static_cast<std::uint64_t>(entry.first);
    return ClassSize{label < names.size() ? printable(names[label]) : fmt::format("label {}", entry.first),
                     entry.second};
  };
  const auto by_size = [](const auto& x, const auto& y) { return x.second < y.second; };
  view.smallest_class = named(*std::min_element(sizes.begin(), sizes.end(), by_size));
  view.largest_class = named(*std::max_element(sizes.begin(), sizes.end(), by_size));
}

std::string counted_samples(const Cases& cases) {
  return fmt::format("{} ({}{})", counted(cases.count, "sample"), cases.count > 1 ? "the first: " : "", cases.example);
}

}  // namespace

DatasetView look_at_index(const Source& source) {
  DatasetView view{.samples = source.size(), .bytes = source.total_bytes(), .largest = source.max_length()};
  view.median = median_length(source);
  const Bytes limit = Limits{}.sample_bytes;
  for (SampleId id = 0; id < source.size(); ++id) {
    const Bytes length = source.length(id);
    if (length == 0) {
      count(view.empty, source, id);
    } else if (length > limit) {
      count(view.oversized, source, id);
    } else if (length > kHugeAtLeast && length / kFarFromMedian >= std::max<Bytes>(view.median, 1)) {
      count(view.huge, source, id);
    } else if (length < view.median / kFarFromMedian) {
      count(view.tiny, source, id);
    }
  }
  look_at_classes(source, view);
  if (source.size() > 0) {
    const Extent first = source.locate(0);
    view.in_shards = first.shared;
    view.is_remote = first.store != nullptr;
    const auto* const local = dynamic_cast<const LocalSource*>(&source);
    if (first.shared && !view.is_remote && local != nullptr) view.files_kept_open = local->files();
  }
  return view;
}

Findings judge_index(const DatasetView& view) {
  Findings findings{{Severity::kOk, "dataset",
                     fmt::format("{} in {}, half of them longer than {}", counted(view.samples, "sample"),
                                 format_bytes(view.bytes), format_bytes(view.median))}};
  const auto add = [&](Finding finding) { findings.push_back(std::move(finding)); };
  if (view.samples == 0) {
    add({Severity::kBreaks, "dataset", "it has no samples", "there is nothing to load", "name a folder with samples"});
  }
  if (view.empty.count > 0) {
    add({Severity::kBreaks, "empty",
         counted_samples(view.empty) + (view.empty.count > 1 ? " have" : " has") + " 0 bytes",
         "the run fails at the first one", "remove or fetch again, or --on-error replace"});
  }
  if (view.oversized.count > 0) {
    add({Severity::kBreaks, "huge",
         counted_samples(view.oversized) + fmt::format(" longer than {}", format_bytes(Limits{}.sample_bytes)),
         "longer than a loader takes: the run fails at the first one", "cut them, or --on-error replace"});
  }
  if (view.huge.count > 0) {
    add({Severity::kCosts, "huge",
         counted_samples(view.huge) +
             fmt::format(" over {} times the median; the longest has {}", kFarFromMedian, format_bytes(view.largest)),
         "its whole batch waits for it, and memory for reads has to hold it", "shrink: foreload convert --max-side"});
  }
  if (view.tiny.count > 0) {
    add({Severity::kNote, "tiny", counted_samples(view.tiny) + fmt::format(" below 1/{} of the median", kFarFromMedian),
         "perhaps cut off, or an error page that was saved as a picture", "look at them"});
  }
  if (!view.in_shards && !view.is_remote && view.samples >= kManyFiles && view.median < kSmallFile) {
    add({Severity::kCosts, "small files",
         fmt::format("{} files, half of them below {}", format_count(view.samples), format_bytes(view.median)),
         "opening them takes longer than reading them", "foreload convert SRC DST makes large files of them"});
  }
  if (view.classes > 1 && view.largest_class.samples >= kUnbalanced * view.smallest_class.samples) {
    add({Severity::kNote, "classes",
         fmt::format("{} classes hold from {} ({}) to {} samples ({})", view.classes, view.smallest_class.samples,
                     view.smallest_class.name, view.largest_class.samples, view.largest_class.name),
         "rare classes are seen rarely, and learned badly", "--weights FILE, or torch's WeightedRandomSampler"});
  }
  if (view.unlabelled > 0 && view.classes > 0) {
    add({Severity::kNote, "labels", fmt::format("{} have none", counted(view.unlabelled, "sample")),
         "their label is -1, which torch's losses refuse", "give them one, or leave them out (--subset)"});
  }
  return findings;
}

Findings judge_samples(const SampleChecks& checks, std::uint64_t samples) {
  Findings findings;
  const std::string looked = checks.looked == samples ? "all samples" : counted(checks.looked, "sample") + " looked at";
  const auto add = [&](Finding finding) { findings.push_back(std::move(finding)); };
  if (!checks.knows_format) {
    add({Severity::kNote, "format", "the first sample is neither a picture nor a .npy array",
         "what is in the samples was not looked at", "give --chain to foreload run"});
  }
  if (checks.unreadable.count > 0) {
    add({Severity::kBreaks, "unreadable",
         fmt::format("{} of {}: {}", checks.unreadable.count, looked, checks.unreadable.example),
         "the run fails at the first one", "mend the file or its permissions; foreload index --rebuild after changes"});
  }
  if (checks.broken.count > 0) {
    add({Severity::kBreaks, "broken", fmt::format("{} of {}: {}", checks.broken.count, looked, checks.broken.example),
         "the run fails at the first one", "remove or fetch again, or --on-error replace"});
  }
  if (checks.damaged.count > 0) {
    add({Severity::kNote, "damaged", fmt::format("{} of {}: {}", checks.damaged.count, looked, checks.damaged.example),
         "decoded all the same, as Pillow does, with wrong pixels", "fetch again"});
  }
  if (checks.copies.count > 0) {
    add({Severity::kNote, "copies",
         fmt::format("{} of {} that share a length: {}", checks.copies.count, counted(checks.compared, "sample"),
                     checks.copies.example),
         checks.contradictions > 0
             ? fmt::format("seen twice per epoch; {} with another label than the original", checks.contradictions)
             : "seen twice per epoch; between training and test sets they leak",
         "remove them, or --subset"});
  }
  if (findings.empty()) {
    add({Severity::kOk, "samples",
         fmt::format("{} decode, no copies among {} of equal length", looked, format_count(checks.compared))});
  }
  return findings;
}

}  // namespace foreload
