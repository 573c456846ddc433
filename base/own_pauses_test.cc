// SPDX-License-Identifier: Apache-2.0
#include "base/own_pauses.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

TEST(OwnPauses, AreGapsBetweenPasses) {
  OwnPauses pauses(absl::Seconds(1));
  absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(pauses.Pass(now), absl::ZeroDuration()) << "the first";
  EXPECT_EQ(pauses.Pass(now += absl::Seconds(1)), absl::ZeroDuration());
  EXPECT_EQ(pauses.Pass(now += absl::Seconds(7)), absl::Seconds(7));
  EXPECT_EQ(pauses.Pass(now += absl::Milliseconds(50)), absl::ZeroDuration());
}

}  // namespace
}  // namespace tug
