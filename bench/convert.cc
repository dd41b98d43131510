// bench/convert: `foreload convert` against the cores it has and against libjpeg's bare copy of the same files.
//   convert [--json] [--photos DIR] [--rounds N] [--images N]
// Works in a fresh folder below build/bench-data, which is removed at the end.
#include "record/convert.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/thread.h"
#include "probe/generated_dataset.h"
#include "probe/jpeg_copy.h"
#include "probe/loader_rates.h"
#include "probe/prep_pictures.h"
#include "report.h"

namespace foreload {
namespace {

struct Settings {
  std::string photos;  // dataset; generated when empty
  unsigned images = 800;
  unsigned rounds = 5;
  bool json = false;
};

class WorkFolder {
 public:
  static Result<WorkFolder> make() {
    std::error_code failed;
    std::filesystem::create_directories("build/bench-data", failed);
    std::string path = "build/bench-data/convert-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return errno_error("cannot create " + path, errno);
    return WorkFolder(std::move(path));
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    if (!path_.empty()) remove(path_);
  }

  std::string path(const char* name) const { return path_ + "/" + name; }
  static void remove(const std::string& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Of one pass over all pictures, by all threads together.
struct Spent {
  double cpu = 0;
  double wall = 0;
};

template <typename Work>
Result<Spent> spent(Work work) {
  wait_until_idle();
  const double cpu = cpu_seconds();
  const Time start = now();
  FORELOAD_TRY(work());
  return Spent{cpu_seconds() - cpu, seconds(now() - start)};
}

// From memory to memory, on all cores: nothing keeps them from being busy but other processes.
Status copy_all(const PrepPictures& pictures) {
  const unsigned threads = usable_cores();
  std::vector<Status> failed(threads);
  std::atomic<std::size_t> next = 0;
  parallel_for(threads, threads, [&](std::uint64_t thread) {
    JpegCopier copier;
    for (std::size_t i = next++; failed[thread].ok() && i < pictures.raw.size(); i = next++) {
      if (pictures.intervals[i] == 0) continue;
      if (auto copy = copier.copy(pictures.raw[i], pictures.intervals[i]); !copy) failed[thread] = copy.error();
    }
  });
  for (Status& status : failed) FORELOAD_TRY(std::move(status));
  return {};
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0.0;
}

Status measure(const Settings& settings, BenchReport& report) {
  FORELOAD_ASSIGN(const WorkFolder work, WorkFolder::make());
  std::string folder = settings.photos;
  if (folder.empty()) {
    folder = work.path("images");
    FORELOAD_TRY(generate_dataset({.folder = folder, .images = settings.images, .seed = 1}));
  }
  FORELOAD_ASSIGN(const PrepPictures pictures, PrepPictures::load(folder, ~0u));
  ConvertOptions options;
  options.source.datasets = {folder};
  options.destination = work.path("records");
  const unsigned cores = usable_cores();
  const double load = load_average();
  std::vector<double> busy, copy_busy, against_copy, rates;
  for (unsigned round = 0; round <= settings.rounds; ++round) {
    FORELOAD_ASSIGN(const Spent copy, spent([&] { return copy_all(pictures); }));
    FORELOAD_ASSIGN(const Spent convert, spent([&] { return convert_dataset(options); }));
    WorkFolder::remove(options.destination);
    if (round == 0) continue;  // warms everything up
    busy.push_back(convert.cpu / (convert.wall * cores));
    copy_busy.push_back(copy.cpu / (copy.wall * cores));
    against_copy.push_back(copy.cpu / convert.cpu);
    rates.push_back(static_cast<double>(pictures.raw.size()) / convert.wall);
  }
  const std::string how = fmt::format("median of {} rounds of {} images, {} cores, {:.0f} images/s; load before {:.1f}",
                                      settings.rounds, pictures.raw.size(), cores, median(rates), load);
  report.add("convert/cores_busy", median(busy), "share", 0.85, true,
             fmt::format("CPU time of the whole conversion (a loop that only copies, in the same run: {:.2f}), {}",
                         median(copy_busy), how));
  report.add("convert/against_bare_copy", median(against_copy), "ratio", 0.65, true,
             "images per CPU-second, everything included, against libjpeg's copy of the coefficients from memory to "
             "memory with the same restart markers, " +
                 how);
  return {};
}

int main_with(int argc, char** argv) {
  Settings settings;
  const auto number = [](const char* text) { return static_cast<unsigned>(std::strtoul(text, nullptr, 10)); };
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--json") settings.json = true;
    if (i + 1 == argc) break;
    if (flag == "--photos") settings.photos = argv[++i];
    if (flag == "--rounds") settings.rounds = number(argv[++i]);
    if (flag == "--images") settings.images = number(argv[++i]);
  }
  BenchReport report;
  const Status status = measure(settings, report);
  if (status.ok()) return report.print(settings.json);
  fmt::print(stderr, "bench/convert: {}\n", status.error().message);
  return 2;
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  return foreload::main_with(argc, argv);
}
