// SPDX-License-Identifier: Apache-2.0
#include "explain/not_modelled.h"

#include <string>
#include <vector>

#include "config/job_config.h"
#include "config/job_rules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kJob[] =
    "name: 'job' data { path: 'x' } cluster { workers: 2 servers: 2 lanes_per_server: 1 }";

JobConfig Job(const std::vector<std::string>& sets) {
  const absl::StatusOr<JobConfig> job = ParseJobConfig(kJob, "test", sets);
  EXPECT_TRUE(job.ok()) << job.status();
  return *job;
}

// Jobs that together have every setting of the table.
const std::vector<std::vector<std::string>> kJobs = {
    {"sync.policy=SSP", "sync.record=ORDER"},
    {"sync.policy=ASP", "optimizer.algorithm=SGD", "sync.delay_compensation=1"},
    {"sync.policy=BACKUP"},
    {"exchange=ALL_REDUCE"},
    {"placement.kind=ZERO3", "placement.host_weight_cache=true"},
    {"placement.kind=MIXED"},
    {"sync.replicas=2"},
    {"sync.local_steps=4"},
    {"comm.impair.delay_ms=1"},
    {"comm.push_codec.auto={}"},
    {"comm.pull_format=PULL_AUTO"},
    {"comm.pull_format=INT8"},
    {"comm.pull_format=CHANGES"},
    {"comm.scheduler=AUTO"},
    {"model.tied_head=false"},
};

TEST(NotModelled, IsEmptyForTheDefaultJob) { EXPECT_THAT(NotModelledIn(Job({})), IsEmpty()); }

TEST(NotModelled, HasSettingsThatMakeAJobModelledAndValid) {
  for (const std::vector<std::string>& sets : kJobs) {
    SCOPED_TRACE(sets.front());
    JobConfig job = Job(sets);
    ASSERT_THAT(NotModelledIn(job), Not(IsEmpty()));
    for (const NotModelled& setting : NotModelledIn(job)) {
      EXPECT_TRUE(ApplyOverride(job, setting.without).ok()) << setting.without;
    }
    FillDefaults(job);
    EXPECT_THAT(NotModelledIn(job), IsEmpty());
    EXPECT_TRUE(Validate(job).ok()) << Validate(job);
  }
}

TEST(NotModelled, AReplayHasSizesAndNoEmbedding) {
  const absl::StatusOr<JobConfig> job =
      ParseJobConfig("compute: REPLAY replay { profile: 'vgg16' } comm { pull_format: INT8 }",
                     "test", std::vector<std::string>{});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(NotModelledIn(*job), IsEmpty());
}

}  // namespace
}  // namespace tug
