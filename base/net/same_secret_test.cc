// SPDX-License-Identifier: Apache-2.0
#include "base/net/same_secret.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(SameSecret, ComparesWholeTexts) {
  EXPECT_TRUE(SameSecret("", ""));
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abd"));
  EXPECT_FALSE(SameSecret("abc", "ab"));
  EXPECT_FALSE(SameSecret("abc", ""));
}

}  // namespace
}  // namespace tug
