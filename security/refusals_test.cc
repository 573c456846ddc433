// SPDX-License-Identifier: Apache-2.0
#include "security/refusals.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Refusals, SaysEachAddressAndReasonOnce) {
  std::vector<std::string> lines;
  Refusals refusals([&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 3; ++i) {
    refusals.Add("10.0.0.1", "it has no keys");
    refusals.Add("10.0.0.1", "its keys are others");
    refusals.Add("10.0.0.2", "it has no keys");
  }
  EXPECT_THAT(lines, ElementsAre("refused 10.0.0.1: it has no keys",
                                 "refused 10.0.0.1: its keys are others",
                                 "refused 10.0.0.2: it has no keys"));
  refusals.Add("10.0.0.1", "it has no keys");
  EXPECT_EQ(lines.back(), "refused 10 times so far");
  EXPECT_EQ(refusals.count(), 10u);
}

TEST(Refusals, StaysBoundedWhoeverComes) {
  std::vector<std::string> lines;
  Refusals refusals([&](const std::string& line) { lines.push_back(line); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10'000; ++i) refusals.Add(absl::StrCat(t, ".", i), "it has no keys");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refusals.count(), 40'000u);
  EXPECT_THAT(lines, SizeIs(100 + 4));
}

TEST(Refusals, AddressCannotUseUpLinesOfOtherAddresses) {
  std::vector<std::string> lines;
  Refusals refusals([&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 999; ++i) refusals.Add("10.0.0.1", absl::StrCat("its fingerprint is ", i));
  EXPECT_THAT(lines, SizeIs(8 + 2));
  EXPECT_EQ(
      lines[7],
      "refused 10.0.0.1: its fingerprint is 7 (further refusals of this address are only counted)");
  refusals.Add("10.0.0.2", "it has no keys");
  EXPECT_EQ(lines[10], "refused 10.0.0.2: it has no keys");
}

}  // namespace
}  // namespace tug
