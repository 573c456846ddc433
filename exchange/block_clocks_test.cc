// SPDX-License-Identifier: Apache-2.0
#include "exchange/block_clocks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const absl::Status& status) {
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

class BlockClocksTest : public ::testing::Test {
 protected:
  BlockClocks clocks_{{"first", "second"}, 7};
};

TEST_F(BlockClocksTest, APullIsOfTheStepBeforeThePushAndOfTheNextAfterIt) {
  const Ticket first = clocks_.Pull(0);
  EXPECT_EQ(MeaningOf(first).clock, 7u);
  EXPECT_FALSE(MeaningOf(first).push);
  clocks_.OnPulled(first);
  clocks_.BeginStep();
  EXPECT_EQ(clocks_.step(), 7u);
  const Ticket push = clocks_.Push(0);
  EXPECT_TRUE(MeaningOf(push).push);
  EXPECT_EQ(MeaningOf(push).clock, 7u);
  EXPECT_EQ(clocks_.newest_push(0), push);
  EXPECT_TRUE(clocks_.CheckMayPull(0).ok());
  EXPECT_EQ(MeaningOf(clocks_.Pull(0)).clock, 8u);
  EXPECT_EQ(MeaningOf(clocks_.Pull(1)).block, 1u);
}

TEST_F(BlockClocksTest, AllowsOneMorePullOfWeightsAfterLastStep) {
  clocks_.OnPulled(clocks_.Pull(0));
  EXPECT_FALSE(clocks_.CheckMayPull(0).ok());
  clocks_.AllowLastPulls();
  ASSERT_TRUE(clocks_.CheckMayPull(0).ok());
  const Ticket again = clocks_.Pull(0);
  EXPECT_TRUE(clocks_.CheckTicket(again).ok());
  clocks_.OnPulled(again);
  EXPECT_FALSE(clocks_.CheckMayPull(0).ok());
  ASSERT_TRUE(clocks_.CheckMayPull(1).ok());  // for the first time
  clocks_.OnPulled(clocks_.Pull(1));
  EXPECT_FALSE(clocks_.CheckMayPull(1).ok());
}

TEST_F(BlockClocksTest, EveryBlockIsPushedOnceInAStep) {
  EXPECT_THAT(ErrorOf(clocks_.CheckMayPush(0)), HasSubstr("outside a step"));
  clocks_.BeginStep();
  EXPECT_TRUE(clocks_.CheckMayPush(1).ok());
  clocks_.Push(1);
  EXPECT_THAT(ErrorOf(clocks_.CheckMayPush(1)), HasSubstr("'second' was already pushed in step 7"));
  EXPECT_THAT(ErrorOf(clocks_.CheckStepComplete()), HasSubstr("'first' was not pushed in step 7"));
  clocks_.Push(0);
  EXPECT_TRUE(clocks_.CheckStepComplete().ok());
  clocks_.EndStep();
  clocks_.BeginStep();
  EXPECT_EQ(clocks_.step(), 8u);
}

TEST_F(BlockClocksTest, AVersionIsPulledOnceAndOnePullAtATime) {
  const Ticket pull = clocks_.Pull(0);
  EXPECT_THAT(ErrorOf(clocks_.CheckMayPull(0)), HasSubstr("was already pulled for step 7"));
  clocks_.BeginStep();
  clocks_.Push(0);
  EXPECT_THAT(ErrorOf(clocks_.CheckMayPull(0)), HasSubstr("is in progress"));
  clocks_.OnPulled(pull);
  EXPECT_TRUE(clocks_.CheckMayPull(0).ok());
}

TEST_F(BlockClocksTest, KnowsItsTicketsAndItsBlocks) {
  EXPECT_THAT(ErrorOf(clocks_.CheckBlock(2)),
              HasSubstr("block 2 does not exist: 2 blocks were declared, 0 to 1"));
  for (const Ticket none : {Ticket{0}, ~Ticket{0}, Ticket{1} << 62 | 7, Ticket{1} << 63 | 7}) {
    EXPECT_THAT(ErrorOf(clocks_.CheckTicket(none)), HasSubstr("is not a valid ticket"));
  }
  clocks_.BeginStep();
  EXPECT_TRUE(clocks_.CheckTicket(clocks_.Push(0)).ok());
  EXPECT_TRUE(clocks_.CheckTicket(clocks_.Pull(0)).ok());
  EXPECT_THAT(ErrorOf(clocks_.CheckTicket(clocks_.newest_push(0) - 1)),
              HasSubstr("is not a valid ticket"));
}

}  // namespace
}  // namespace tug
