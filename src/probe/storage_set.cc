#include "probe/storage_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "base/write_file.h"

namespace foreload {
namespace {

constexpr std::uint64_t kFilesPerFolder = 1000;
constexpr std::uint64_t kBatch = 16;

std::vector<std::byte> noise(Bytes length) {
  KeyedRandom random(1, 0, 0, 0);
  std::vector<std::byte> bytes(length);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next_u32());
  return bytes;
}

// One stretch of noise, from another place for every sample.
Status write_samples(const std::string& folder, std::uint64_t samples, Bytes length) {
  const std::vector<std::byte> bytes = noise(4 * length);
  for (SampleId id = 0; id < samples; ++id) {
    const std::string path = StorageSet::file_in(folder, id);
    if (id % kFilesPerFolder == 0) {
      std::error_code failed;
      std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
      if (failed) return errno_error("cannot make a folder for " + path, failed.value());
    }
    FORELOAD_ASSIGN(const Descriptor file, create_output(path));
    const Bytes from = mix64(id + 1) % (3 * length);
    FORELOAD_TRY(write_all(file.get(), std::span(bytes).subspan(from, length), path));
  }
  FORELOAD_ASSIGN(const Descriptor all, open_directory(folder));
  if (::syncfs(all.get()) != 0) return errno_error("cannot flush " + folder, errno);
  return {};
}

}  // namespace

Result<std::string> make_fresh_folder(const std::string& parent, const std::string& name) {
  std::error_code failed;
  std::filesystem::create_directories(parent, failed);
  std::string folder = fmt::format("{}/{}-XXXXXX", parent, name);
  if (::mkdtemp(folder.data()) == nullptr) return errno_error("cannot make a folder in " + parent, errno);
  return folder;
}

Result<StorageSet> StorageSet::make(const std::string& parent, std::uint64_t samples, Bytes length) {
  FORELOAD_ASSIGN(std::string folder, make_fresh_folder(parent, "storage"));
  StorageSet set(std::move(folder), samples, length);
  FORELOAD_TRY(write_samples(set.samples(), samples, length));
  return set;
}

StorageSet::StorageSet(StorageSet&& other) noexcept
    : folder_(std::move(other.folder_)), size_(other.size_), length_(other.length_) {
  other.folder_.clear();
}

StorageSet::~StorageSet() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string StorageSet::file_in(const std::string& samples, SampleId id) {
  return fmt::format("{}/{:04}/{:08}.bin", samples, id / kFilesPerFolder, id);
}

LoaderOptions StorageSet::options() const {
  LoaderOptions options;
  options.dataset = {samples()};
  options.batch = kBatch;
  options.seed = 1;
  options.chain = {array(DType::kU8, {length_}, true)};
  options.source.index_folder = folder_;
  options.rewrite = Rewrite::kOff;
  return options;
}

Status StorageSet::forget() const {
  for (SampleId id = 0; id < size_; ++id) FORELOAD_TRY(forget_file(file(id)));
  return {};
}

Status forget_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno_error("cannot open " + path, errno);
  const int failed = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  return failed == 0 ? Status() : Status(errno_error("cannot take from the page cache " + path, failed));
}

}  // namespace foreload
