// SPDX-License-Identifier: Apache-2.0
#include "coordinator/checkpoints/failed_checkpoints.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(FailedCheckpoints, CountsVersionsInARow) {
  FailedCheckpoints failed;
  EXPECT_TRUE(failed.Add(10, "disk full"));
  EXPECT_FALSE(failed.Add(10, "disk full")) << "another part of it";
  EXPECT_TRUE(failed.Add(20, "disk full"));
  EXPECT_FALSE(failed.too_many());
  failed.OnCommitted(25);
  EXPECT_EQ(failed.Find(20), nullptr);
  EXPECT_TRUE(failed.Add(30, "disk full"));
  EXPECT_TRUE(failed.Add(40, "no space"));
  EXPECT_FALSE(failed.too_many());
  EXPECT_TRUE(failed.Add(50, "disk full"));
  EXPECT_TRUE(failed.too_many());
  EXPECT_EQ(*failed.Find(40), "no space");
}

}  // namespace
}  // namespace tug
