// Specimen: some samples of a dataset, chosen by the seed, copied into a temporary folder that disappears with the
// object: on this machine, whatever the dataset's storage is, and small enough to be read again and again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "probe/windows.h"
#include "record/convert.h"

namespace foreload {

// The source that a loader with these options would have.
Result<std::unique_ptr<Source>> open_dataset(const LoaderOptions& options);

// So many of the samples, or all, from the shortest to the longest: the seed chooses some, of which every length has
// its share, so that means over them are close to those over the dataset. Empty samples are left out.
std::vector<SampleId> representative_samples(const Source& source, std::uint64_t seed, std::uint64_t count);

// A fresh folder that is removed with everything in it. While it lives, a file in it is locked: so the folder of a
// process that was killed is known, and the next one that makes a folder in the same place removes it.
class TemporaryFolder {
 public:
  static constexpr const char* kName = "foreload-analyze";        // its name begins with that
  static constexpr const char* kMark = ".foreload-analyze.lock";  // the file
  // Inside of `parent`; empty: TMPDIR, or /tmp.
  static Result<TemporaryFolder> make(const std::string& parent);
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), mark_(std::move(other.mark_)) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  Status mark();

  std::string path_;  // empty: moved from
  Descriptor mark_;   // locked
};

class Specimen {
 public:
  static constexpr std::uint64_t kMostSamples = 256;
  static constexpr Bytes kMostBytes = 64'000'000;

  // Reads past emulated slowness. Fewer samples where storage is slow: a tenth of the time is enough.
  static Result<Specimen> take(const Source& source, const LoaderOptions& options, Allowance& allowance);

  std::uint64_t size() const { return size_; }
  Bytes bytes() const { return bytes_; }
  const std::string& folder() const { return folder_.path(); }
  std::string raw() const { return folder() + "/raw"; }  // one file each

  // Makes records of them in "folder()/NAME". REQUIRES: it has not done so before.
  Result<ConvertReport> convert(const std::string& name, bool keep_original, const Allowance& allowance) const;
  // The dataset's options for a loader over `dataset`, which is made of these samples: one learner that shares nothing
  // with others, small batches, bad samples replaced, storage as quick as it is.
  LoaderOptions options(const LoaderOptions& of, const std::string& dataset) const;

 private:
  Specimen(TemporaryFolder folder, std::vector<Transform> chain)
      : folder_(std::move(folder)), chain_(std::move(chain)) {}
  Status write(std::size_t number, const std::string& key, std::span<const std::byte> bytes);

  TemporaryFolder folder_;
  std::vector<Transform> chain_;  // of the dataset
  std::uint64_t size_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace foreload
