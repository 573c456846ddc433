// SPDX-License-Identifier: Apache-2.0
#include "worker/current_activity.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

using Doing = CurrentActivity::Doing;

TEST(CurrentActivity, SaysWhatWasSetAndSinceWhen) {
  CurrentActivity activity;
  EXPECT_EQ(activity.Get().doing, Doing::kResting);
  const absl::Time begin = absl::FromUnixSeconds(1'700'000'000);
  activity.Set(Doing::kWaiting, 1'000'000, 999'999'999'999, begin);
  activity.Set(Doing::kWaiting, 1'000'000, 999'999'999'999, begin + absl::Seconds(3));
  EXPECT_EQ(activity.Get().doing, Doing::kWaiting);
  EXPECT_EQ(activity.Get().block, 1'000'000u);
  EXPECT_EQ(activity.Get().clock, 999'999'999'999u);
  EXPECT_EQ(activity.Get().since, begin) << "it has been at that since then";
  activity.Set(Doing::kComputing, 1'000'000, 999'999'999'999, begin + absl::Seconds(4));
  EXPECT_EQ(activity.Get().since, begin + absl::Seconds(4));
}

}  // namespace
}  // namespace tug
