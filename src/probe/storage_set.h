// StorageSet: what storage is measured with. Samples of one length, one file each, that need no decoding, so that
// fetching is all that takes time; in a fresh folder that disappears with the object.
#pragma once

#include <string>
#include <utility>

#include "foreload/loader.h"
#include "foreload/result.h"

namespace foreload {

class StorageSet {
 public:
  static constexpr Bytes kLength = 110'000;  // as ImageNet's mean

  // Makes `samples` files in a fresh folder inside of `parent`.
  static Result<StorageSet> make(const std::string& parent, std::uint64_t samples, Bytes length = kLength);
  StorageSet(StorageSet&& other) noexcept;
  StorageSet& operator=(StorageSet&&) = delete;
  ~StorageSet();

  const std::string& folder() const { return folder_; }     // everything
  std::string samples() const { return folder_ + "/set"; }  // the dataset
  std::string file(SampleId id) const { return file_in(samples(), id); }
  static std::string file_in(const std::string& samples, SampleId id);
  std::uint64_t size() const { return size_; }
  Bytes bytes() const { return size_ * length_; }
  // Options of a loader over it: batches of 16, no rewriting, no memory given yet.
  LoaderOptions options() const;
  // Takes its files out of the page cache.
  Status forget() const;

 private:
  StorageSet(std::string folder, std::uint64_t size, Bytes length)
      : folder_(std::move(folder)), size_(size), length_(length) {}

  std::string folder_;  // empty: moved from
  std::uint64_t size_ = 0;
  Bytes length_ = kLength;
};

// Takes one file out of the page cache. What was written to it must have reached the disk.
Status forget_file(const std::string& path);

// Makes a fresh folder "NAME-XXXXXX" inside of `parent`, which is made as well.
Result<std::string> make_fresh_folder(const std::string& parent, const std::string& name);

}  // namespace foreload
