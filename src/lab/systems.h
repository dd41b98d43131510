// The systems that can be compared, one file each; the table of them is in loading_system.cc.
#pragma once

#include <memory>

#include "lab/loading_system.h"

namespace foreload {

std::unique_ptr<LoadingSystem> make_unlimited(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_naive(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_page_cache(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_page_cache_in_order(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_lru(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_minio(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_partitioned(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_locality(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_nopfs(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_lobster(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_local(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_partial(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_echo(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_coordinated(const SystemScene& scene);
std::unique_ptr<LoadingSystem> make_foreload(const SystemScene& scene);

}  // namespace foreload
