// Reads one epoch of a dataset and counts its labels: count_labels DATASET
#include <foreload/loader.h>

#include <cstdio>
#include <map>

using namespace foreload;

int fail(const Error& error) {
  std::fprintf(stderr, "count_labels: %s\n", error.message.c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return fail({Code::kInvalid, "usage: count_labels DATASET"});
  auto loader = Loader::open({.dataset = {argv[1]},
                              .batch = 8,
                              .seed = 7,
                              .chain = {random_resized_crop(224), random_flip(), normalize(kImageNet)},
                              .memory = 256_MiB});
  if (!loader.ok()) return fail(loader.error());
  std::map<long, long> counts;
  for (;;) {
    auto batch = loader->next();  // Result<std::optional<Batch>>
    if (!batch.ok()) return fail(batch.error());
    if (!*batch) break;  // the epoch's end
    // (*batch)->as<float>() holds the images: size() x 3 x 224 x 224, in the loader's own memory.
    for (const auto label : (*batch)->labels()) ++counts[static_cast<long>(label)];
  }
  for (const auto& [label, count] : counts) std::printf("label %ld: %ld samples\n", label, count);
  return 0;
}
