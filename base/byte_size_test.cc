// SPDX-License-Identifier: Apache-2.0
#include "base/byte_size.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(ByteSizeText, IsExact) {
  EXPECT_EQ(ByteSizeText(0), "0 B");
  EXPECT_EQ(ByteSizeText(100), "100 B");
  EXPECT_EQ(ByteSizeText(4096), "4 KiB");
  EXPECT_EQ(ByteSizeText(3 << 19), "1536 KiB");
  EXPECT_EQ(ByteSizeText(uint64_t{1} << 31), "2 GiB");
}

}  // namespace
}  // namespace tug
