// Usage: consumer DATASET SAMPLES. Reads one epoch and fails unless it has that many samples.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "foreload/loader.h"

namespace {

// The samples of the epoch, or -1.
std::int64_t count_samples(foreload::Loader& loader) {
  std::int64_t count = 0;
  for (;;) {
    auto batch = loader.next();
    if (!batch) {
      std::fprintf(stderr, "consumer: %s\n", batch.error().message.c_str());
      return -1;
    }
    if (!*batch) return count;
    if ((*batch)->as<float>().size() != (*batch)->size() * 3 * 64 * 64) return -1;
    count += static_cast<std::int64_t>((*batch)->size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace foreload;
  if (argc != 3) return 2;
  auto loader = Loader::open({.dataset = {argv[1]},
                              .batch = 5,
                              .seed = 7,
                              .chain = {random_resized_crop(64), random_flip(), normalize(kImageNet)},
                              .memory = 256_MiB});
  if (!loader) {
    std::fprintf(stderr, "consumer: %s\n", loader.error().message.c_str());
    return 1;
  }
  const std::int64_t count = count_samples(*loader);
  std::printf("consumer: %lld samples in %zu batches\n", static_cast<long long>(count),
              static_cast<std::size_t>(loader->batches_per_epoch()));
  return count == std::atoll(argv[2]) ? 0 : 1;
}
