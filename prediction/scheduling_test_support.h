// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PREDICTION_SCHEDULING_TEST_SUPPORT_H_
#define TUG_PREDICTION_SCHEDULING_TEST_SUPPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "config/job_config.h"
#include "model/replay/replay_profile.h"

namespace tug {

// A block of a profile made for a test.
struct TestBlock {
  uint64_t parameters = 0;
  double forward_ms = 0;
  double backward_ms = 0;
};

// A complete job with one lane per server. `more`: "field.of.job=value".
inline JobConfig ReplayJob(const ReplayProfile& profile, const std::vector<std::string>& more) {
  absl::StatusOr<JobConfig> job = ParseJobConfig(
      "name: 'replay' compute: REPLAY replay { profile: 'test' } optimizer { clip: OFF } "
      "cluster { lanes_per_server: 1 }",
      "test", more);
  TUG_CHECK_OK(job.status());
  *job->mutable_replay()->mutable_resolved_profile() = profile;
  return *std::move(job);
}

inline ReplayProfile ProfileOf(const std::vector<TestBlock>& blocks) {
  ReplayProfile profile;
  profile.set_name("test");
  profile.set_batch(1);
  for (const TestBlock& block : blocks) {
    ReplayBlock* added = profile.add_blocks();
    added->set_name(absl::StrCat("b", profile.blocks_size()));
    added->set_parameters(block.parameters);
    added->set_forward_ms(block.forward_ms);
    added->set_backward_ms(block.backward_ms);
  }
  return profile;
}

inline ReplayProfile ShippedProfile(const std::string& name, double size_scale) {
  absl::StatusOr<ReplayProfile> profile = LoadReplayProfile(name);
  TUG_CHECK_OK(profile.status());
  return ScaledReplayProfile(*std::move(profile), /*time_scale=*/1, size_scale);
}

}  // namespace tug

#endif  // TUG_PREDICTION_SCHEDULING_TEST_SUPPORT_H_
