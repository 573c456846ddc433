// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_sizes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(ParseByteSize, TakesUnitsOf1024) {
  EXPECT_EQ(*ParseByteSize("0"), 0u);
  EXPECT_EQ(*ParseByteSize("100"), 100u);
  EXPECT_EQ(*ParseByteSize("4K"), 4096u);
  EXPECT_EQ(*ParseByteSize("4k"), 4096u);
  EXPECT_EQ(*ParseByteSize("1M"), 1u << 20);
  EXPECT_EQ(*ParseByteSize("3GiB"), uint64_t{3} << 30);
}

TEST(ParseByteSize, RefusesWhatIsNoSizeByName) {
  for (const char* text : {"", "K", "4X", "-1", "4 K", "1.5M", "4KiBs", "99999999999999999999",
                           "99999999999999999G"}) {
    const auto size = ParseByteSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(std::string(size.status().message()),
                testing::HasSubstr("'" + std::string(text) + "'"));
  }
}

TEST(CheckPartitionBytes, WantsAPowerOfTwoThatAMessageCarries) {
  EXPECT_TRUE(CheckPartitionBytes(4096).ok());
  EXPECT_TRUE(CheckPartitionBytes(256 << 20).ok());
  EXPECT_FALSE(CheckPartitionBytes(0).ok());
  EXPECT_FALSE(CheckPartitionBytes(2048).ok());
  EXPECT_FALSE(CheckPartitionBytes(5000).ok());
  EXPECT_FALSE(CheckPartitionBytes(512 << 20).ok());
}

TEST(ServerMemoryLine, CountsTheCopyForBf16PullsOnlyWhereThereIsOne) {
  EXPECT_EQ(ServerMemoryLine(0, false, 0), 64u << 20);
  EXPECT_EQ(ServerMemoryLine(1000, false, 7), 20000u + 7 + (64u << 20));
  EXPECT_EQ(ServerMemoryLine(1000, true, 7), 22000u + 7 + (64u << 20));
}

}  // namespace
}  // namespace tug
