// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(NearestName, FindsMisspellings) {
  const std::vector<std::string> names = {"train", "trace", "status", "stop", "global_batch"};
  EXPECT_EQ(NearestName("tarin", names), "train");
  EXPECT_EQ(NearestName("Tran", names), "train");
  EXPECT_EQ(NearestName("trase", names), "trace");
  EXPECT_EQ(NearestName("globalbatch", names), "global_batch");
  EXPECT_EQ(NearestName("global_batches", names), "global_batch");
  EXPECT_EQ(NearestName("tp", names), "") << "half of the word";
  EXPECT_EQ(NearestName("optimizer", names), "");
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName("a", std::vector<std::string>{"b"}), "");
  EXPECT_EQ(DidYouMean("sttus", names), "; did you mean status?");
  EXPECT_EQ(DidYouMean("x", {}), "");
}

}  // namespace
}  // namespace tug
