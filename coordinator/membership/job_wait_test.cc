// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/job_wait.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

using Kind = WaitReason::Kind;

constexpr absl::Duration kPatience = absl::Seconds(20);

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(WaitWatch, CountsFromTheBeginningOfAWaitOfOneKind) {
  WaitWatch wait(kPatience);
  wait.See(WaitReason{Kind::kMembers, "2 servers to join", ""}, 0, 0, At(1));
  wait.See(WaitReason{Kind::kMembers, "1 server to join", ""}, 0, 0, At(5));
  EXPECT_EQ(wait.reason()->what, "1 server to join");
  EXPECT_EQ(wait.since(), At(1));
  wait.See(WaitReason{Kind::kReady, "server-0", ""}, 0, 0, At(6));
  EXPECT_EQ(wait.since(), At(6));
  wait.See(std::nullopt, 0, 0, At(7));
  EXPECT_FALSE(wait.reason().has_value());
}

TEST(WaitWatch, AStepThatTakesTooLongHasStalled) {
  WaitWatch wait(kPatience);
  wait.See(std::nullopt, 7, 0.1, At(100));
  wait.See(std::nullopt, 7, 0.1, At(119));
  EXPECT_FALSE(wait.reason().has_value());
  wait.See(std::nullopt, 7, 0.1, At(120));
  ASSERT_TRUE(wait.reason().has_value());
  EXPECT_EQ(wait.reason()->what, "step 8");
  EXPECT_EQ(wait.since(), At(100));
  wait.See(std::nullopt, 8, 0.1, At(121));
  EXPECT_FALSE(wait.reason().has_value());
}

TEST(WaitWatch, AStepThatIsUsuallyLongHasNotStalled) {
  WaitWatch wait(kPatience);
  wait.See(std::nullopt, 7, 3, At(100));
  wait.See(std::nullopt, 7, 3, At(129));
  EXPECT_FALSE(wait.reason().has_value());
  wait.See(std::nullopt, 7, 3, At(130));
  EXPECT_TRUE(wait.reason().has_value());
}

TEST(WaitWatch, AWaitForNodesIsNoSlowStep) {
  WaitWatch wait(kPatience);
  wait.See(WaitReason{Kind::kMembers, "1 worker to join", ""}, 7, 0.1, At(100));
  wait.See(WaitReason{Kind::kMembers, "1 worker to join", ""}, 7, 0.1, At(200));
  wait.See(std::nullopt, 7, 0.1, At(201));
  EXPECT_FALSE(wait.reason().has_value());
}

}  // namespace
}  // namespace tug
