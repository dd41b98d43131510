// A unit of work is one file: an image, or a shard of them. Class c holds the images ⌈cN/C⌉ … ⌈(c+1)N/C⌉-1, so
// that the sorted order of paths, the order of tar members and the order of indices are one and the same.
//
//   DIR/.foreload-generated.json       written first: whose folder this is, and from which options
//   DIR/class_00003/00000341.jpg        or
//   DIR/shard-000002.tar               with members class_00003/00000341.jpg and class_00003/00000341.cls
#include "probe/generated_dataset.h"

#include <fmt/core.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/machine.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "base/write_file.h"
#include "probe/synthetic.h"
#include "source/tar_writer.h"

namespace foreload {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarker = ".foreload-generated.json";
// What the digits of the names hold, so that names sort as numbers do.
constexpr std::uint64_t kMaxImages = 100'000'000;
constexpr std::uint64_t kMaxClasses = 100'000;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::uint64_t class_of(const GenerateOptions& options, std::uint64_t image) {
  return image * options.classes / options.images;
}

// Path without extension, the same in a folder and in a tar.
std::string stem_of(const GenerateOptions& options, std::uint64_t image) {
  return fmt::format("class_{:05}/{:08}", class_of(options, image), image);
}

std::uint64_t unit_count(const GenerateOptions& options) {
  if (options.shard_images == 0) return options.images;
  return (options.images + options.shard_images - 1) / options.shard_images;
}

std::string unit_path(const GenerateOptions& options, std::uint64_t unit) {
  if (options.shard_images > 0) return fmt::format("{}/shard-{:06}.tar", options.folder, unit);
  return fmt::format("{}/{}.jpg", options.folder, stem_of(options, unit));
}

std::uint64_t images_in_unit(const GenerateOptions& options, std::uint64_t unit) {
  if (options.shard_images == 0) return 1;
  return std::min(options.shard_images, options.images - unit * options.shard_images);
}

std::string marker_text(const GenerateOptions& options) {
  return fmt::format(
      "{{\"schema\": 1, \"made_by\": \"foreload generate\", \"version\": {}, \"images\": {}, \"seed\": {}, "
      "\"classes\": {}, \"shard_images\": {}}}\n",
      kSyntheticVersion, options.images, options.seed, options.classes, options.shard_images);
}

void append_member(std::vector<std::byte>& tar, const std::string& name, std::span<const std::byte> content) {
  const std::string header = tar_file_header(name, content.size());
  const auto blocks = bytes_of(header);
  tar.insert(tar.end(), blocks.begin(), blocks.end());
  tar.insert(tar.end(), content.begin(), content.end());
  tar.resize(tar_padded(tar.size()));
}

class Generator {
 public:
  explicit Generator(const GenerateOptions& options) : options_(options) {}

  // Locks the folder for this process, and makes sure that it is empty or ours.
  Status claim_folder();
  Result<GenerateReport> run();

 private:
  Status check_owner();
  Status sweep();
  Status make_unit(std::uint64_t unit);
  Result<std::vector<std::byte>> content_of(std::uint64_t unit);
  void work_on(std::uint64_t unit);
  Status ask_to_stop() const;
  std::string marker() const { return fmt::format("{}/{}", options_.folder, kMarker); }

  const GenerateOptions& options_;
  Descriptor lock_;
  std::atomic<std::uint64_t> present_{0};
  std::atomic<std::uint64_t> made_{0};
  std::atomic<Bytes> bytes_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  std::optional<Error> error_ FORELOAD_GUARDED_BY(mutex_);
};

Status Generator::claim_folder() {
  std::error_code error;
  fs::create_directories(options_.folder, error);
  if (error) return errno_error("cannot create the folder " + options_.folder, error.value());
  FORELOAD_ASSIGN(lock_, open_directory(options_.folder));
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return errno_error("cannot lock the folder " + options_.folder, errno);
    return Error{Code::kInvalid, options_.folder + " is being written by another process: wait for it to end"};
  }
  return check_owner();
}

Status Generator::check_owner() {
  const std::string expected = marker_text(options_);
  const Result<std::string> found = read_whole_file(marker(), 4_KiB);
  if (!found && found.error().code != Code::kNotFound) return found.error();
  if (!found) {
    std::error_code error;
    const bool empty = fs::is_empty(options_.folder, error);
    if (error) return errno_error("cannot list the folder " + options_.folder, error.value());
    if (!empty) {
      return Error{Code::kInvalid,
                   fmt::format("{} is not empty and was not made by foreload generate: name another folder, or "
                               "remove it",
                               options_.folder)};
    }
    return replace_file(marker(), bytes_of(expected));
  }
  if (*found == expected) return sweep();
  const std::string_view have(found->data(), std::min(found->size(), found->find('\n')));
  return Error{Code::kInvalid,
               fmt::format("{} was generated with other options: it has {}, asked for is {}. Name another folder, or "
                           "remove it",
                           options_.folder, have, expected.substr(0, expected.size() - 1))};
}

// Removes what a killed run was just writing.
Status Generator::sweep() {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(options_.folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".tmp" && entry->is_regular_file(error)) fs::remove(entry->path(), error);
  }
  if (error) return errno_error("cannot clean the folder " + options_.folder, error.value());
  return {};
}

Status Generator::ask_to_stop() const {
  if (!options_.stop || !options_.stop()) return {};
  return Error{Code::kCancelled, "stopped; the same command continues"};
}

Result<std::vector<std::byte>> Generator::content_of(std::uint64_t unit) {
  if (options_.shard_images == 0) return synthetic_jpeg(options_.seed, unit);
  std::vector<std::byte> tar;
  const std::uint64_t first = unit * options_.shard_images;
  for (std::uint64_t image = first; image < first + images_in_unit(options_, unit); ++image) {
    FORELOAD_TRY(ask_to_stop());
    const std::string stem = stem_of(options_, image);
    append_member(tar, stem + ".cls", bytes_of(fmt::format("{}", class_of(options_, image))));
    append_member(tar, stem + ".jpg", synthetic_jpeg(options_.seed, image));
  }
  tar.resize(tar.size() + kTarEndBytes);
  return tar;
}

Status Generator::make_unit(std::uint64_t unit) {
  const std::string path = unit_path(options_, unit);
  std::error_code error;
  const std::uintmax_t there = fs::file_size(path, error);
  if (!error && there > 0) {
    bytes_ += there;
    return {};
  }
  FORELOAD_TRY(ask_to_stop());
  FORELOAD_ASSIGN(const std::vector<std::byte> content, content_of(unit));
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return errno_error("cannot create the folder of " + path, error.value());
  FORELOAD_TRY(replace_file(path, content));
  bytes_ += content.size();
  made_ += images_in_unit(options_, unit);
  return {};
}

void Generator::work_on(std::uint64_t unit) {
  if (failed_) return;
  if (Status status = make_unit(unit); !status) {
    failed_ = true;
    const MutexLock lock(mutex_);
    if (!error_) error_ = std::move(status).error();
    return;
  }
  const std::uint64_t images = images_in_unit(options_, unit);
  const std::uint64_t done = present_.fetch_add(images) + images;
  if (options_.progress) options_.progress(done);
}

Result<GenerateReport> Generator::run() {
  const unsigned threads = options_.threads > 0 ? options_.threads : usable_cores();
  parallel_for(threads, unit_count(options_), [this](std::uint64_t unit) { work_on(unit); });
  const MutexLock lock(mutex_);
  if (error_) return *error_;
  return GenerateReport{options_.images, made_, bytes_};
}

}  // namespace

Result<GenerateReport> generate_dataset(const GenerateOptions& options) {
  const std::uint64_t most_classes = std::min(options.images, kMaxClasses);
  if (options.images == 0 || options.images > kMaxImages) {
    return Error{Code::kInvalid, fmt::format("{} images are not possible: choose 1 … {}", options.images, kMaxImages)};
  }
  if (options.classes == 0 || options.classes > most_classes) {
    return Error{Code::kInvalid, fmt::format("{} classes are not possible with {} images: choose 1 … {}",
                                             options.classes, options.images, most_classes)};
  }
  Generator generator(options);
  FORELOAD_TRY(generator.claim_folder());
  return generator.run();
}

}  // namespace foreload
