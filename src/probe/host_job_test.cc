#include "probe/host_job.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

TEST(HostJobTest, TheStartedProcessOpensWhatWasAskedFor) {
  HostJob job{.slots = 3, .host_cores = 8};
  job.loader.dataset = {"some \"folder\"", "b"};
  job.loader.source.index_folder = "index";
  job.loader.batch = 16;
  job.loader.seed = 1ull << 63;
  job.loader.chain = {random_resized_crop(224), random_flip(), normalize(kImageNet)};
  job.loader.memory = 3_GiB;
  job.loader.workers = 2;
  job.loader.held_batches = 1;
  job.loader.host = "a-host";
  job.loader.rank = 1;
  job.loader.world = 4;
  job.loader.io = "threads";
  job.loader.storage = "20MB/s,1ms";
  const auto read = parse_job(job_text(job));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(job_text(*read), job_text(job));
  EXPECT_EQ(read->loader.dataset, job.loader.dataset);
  EXPECT_EQ(read->loader.seed, job.loader.seed);
  EXPECT_EQ(read->loader.chain, job.loader.chain);
  EXPECT_EQ(read->loader.host, "a-host");
  EXPECT_EQ(read->loader.workers, 2u);
  EXPECT_EQ(read->slots, 3u);
  job.loader.workers.reset();
  EXPECT_EQ(parse_job(job_text(job))->loader.workers, std::nullopt);
}

TEST(HostJobTest, WhatIsNoJobIsRefused) {
  EXPECT_FALSE(parse_job("").ok());
  EXPECT_FALSE(parse_job("[1]").ok());
  EXPECT_FALSE(parse_job("{\"chain\": \"no_such_transform\"}").ok());
}

TEST(HostJobTest, AnErrorOfTheProcessIsAnErrorHere) {
  EXPECT_EQ(*number_in("{\"rate\": 2.5}", "rate"), 2.5);
  EXPECT_EQ(number_in("{\"error\": \"no room\"}", "rate").error().message, "no room");
  EXPECT_FALSE(number_in("{}", "rate").ok());
  EXPECT_FALSE(number_in("Traceback", "rate").ok());
}

}  // namespace
}  // namespace foreload
