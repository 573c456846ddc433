// SPDX-License-Identifier: Apache-2.0
#include "base/stop_wishes.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

TEST(StopWishes, AreOneSecondApart) {
  StopWishes wishes;
  const absl::Time begin = absl::UnixEpoch();
  EXPECT_EQ(wishes.count(), 0);
  EXPECT_TRUE(wishes.Add(begin));
  EXPECT_FALSE(wishes.Add(begin));
  EXPECT_FALSE(wishes.Add(begin + absl::Milliseconds(999)));
  EXPECT_TRUE(wishes.Add(begin + absl::Seconds(1)));
  EXPECT_FALSE(wishes.Add(begin + absl::Milliseconds(1999)));
  EXPECT_EQ(wishes.count(), 2);
}

}  // namespace
}  // namespace tug
