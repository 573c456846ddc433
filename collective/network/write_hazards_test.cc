// SPDX-License-Identifier: Apache-2.0
#include "collective/network/write_hazards.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tug {
namespace {

using Hazards = std::vector<WriteHazard>;

TEST(WriteHazards, AreWhereTwoRanksExchangeWhatBothSumInto) {
  const std::vector<CollectiveSchedule> family = {
      {1, {{{{1, 0, 1}}, {{1, 0, 1, true}}}}},
      {1, {{{{0, 0, 1}}, {{0, 0, 1, true}}}}},
  };
  for (uint32_t rank : {0, 1}) {
    EXPECT_EQ(WriteHazards(family)[rank], (Hazards{{0, 0, 0, 0}})) << rank;
  }
}

TEST(WriteHazards, AreNotWhereAPartComesBackFromWhomItWentTo) {
  const std::vector<CollectiveSchedule> family = {
      {2, {{{{1, 0, 1}}, {{1, 1, 2, true}}}, {{{1, 1, 2}}, {{1, 0, 1}}}}},
      {2, {{{{0, 1, 2}}, {{0, 0, 1, true}}}, {{{0, 0, 1}}, {{0, 1, 2}}}}},
  };
  for (uint32_t rank : {0, 1}) EXPECT_EQ(WriteHazards(family)[rank], Hazards{}) << rank;
}

// Rank 0 sends to 1 and 2, and gets the part back from 2, which knows nothing of rank 1.
TEST(WriteHazards, NameTheSendOfAnEarlierStepThatNothingProvesRead) {
  const std::vector<CollectiveSchedule> family = {
      {1, {{{{1, 0, 1}, {2, 0, 1}}, {}}, {{}, {{2, 0, 1}}}}},
      {1, {{{}, {{0, 0, 1}}}}},
      {1, {{{}, {{0, 0, 1, true}}}, {{{0, 0, 1}}, {}}}},
  };
  EXPECT_EQ(WriteHazards(family)[0], (Hazards{{1, 0, 0, 0}}));
  EXPECT_EQ(WriteHazards(family)[1], Hazards{});
  EXPECT_EQ(WriteHazards(family)[2], Hazards{});
}

// 0 -> 1 -> 2 -> 0: the data from rank 2 was computed from the data that rank 1 has read.
TEST(WriteHazards, FollowCausesThroughOtherRanks) {
  const std::vector<CollectiveSchedule> family = {
      {1, {{{{1, 0, 1}}, {}}, {}, {{}, {{2, 0, 1}}}}},
      {1, {{{}, {{0, 0, 1, true}}}, {{{2, 0, 1}}, {}}, {}}},
      {1, {{}, {{}, {{1, 0, 1, true}}}, {{{0, 0, 1}}, {}}}},
  };
  for (uint32_t rank : {0, 1, 2}) EXPECT_EQ(WriteHazards(family)[rank], Hazards{}) << rank;
}

TEST(WriteHazards, HazardOfSendIsOnlyWithFirstWriteAfterIt) {
  const std::vector<CollectiveSchedule> family = {
      {1, {{{{1, 0, 1}}, {{1, 0, 1, true}}}, {{}, {{1, 0, 1}}}}},
      {1, {{{{0, 0, 1}}, {{0, 0, 1, true}}}, {{{0, 0, 1}}, {}}}},
  };
  EXPECT_EQ(WriteHazards(family)[0], (Hazards{{0, 0, 0, 0}}));
}

}  // namespace
}  // namespace tug
