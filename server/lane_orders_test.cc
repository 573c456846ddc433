// SPDX-License-Identifier: Apache-2.0
#include "server/lane_orders.h"

#include <gtest/gtest.h>

#include "config/job_config.h"

namespace tug {
namespace {

class LaneOrdersTest : public testing::Test {
 protected:
  LaneOrdersTest() { FillDefaults(config_); }

  static View MakeView(uint32_t number, uint32_t timeline, uint32_t placement) {
    View view;
    view.set_number(number);
    view.set_timeline(timeline);
    view.set_placement(placement);
    view.add_lanes();
    return view;
  }
  static HeartbeatReply Next(uint32_t number, uint32_t timeline, uint32_t placement) {
    HeartbeatReply reply;
    *reply.mutable_next_view() = MakeView(number, timeline, placement);
    if (placement == 0) reply.mutable_next_view()->clear_lanes();
    return reply;
  }

  JobConfig config_;
  LaneOrders orders_{config_, /*server_node_id=*/1};
};

TEST_F(LaneOrdersTest, BeginWithTheFirstViewAndEveryNewTimeline) {
  EXPECT_TRUE(orders_.Begins(MakeView(1, 1, 1)));
  orders_.OnView(MakeView(1, 1, 1));
  EXPECT_FALSE(orders_.Begins(MakeView(2, 1, 2)));
  EXPECT_TRUE(orders_.Begins(MakeView(3, 2, 3)));
}

TEST_F(LaneOrdersTest, FenceWithANextViewThatOnlyHasANumber) {
  EXPECT_FALSE(orders_.OnReply(Next(2, 1, 0))) << "the lane has not begun";
  orders_.OnView(MakeView(1, 1, 1));
  EXPECT_TRUE(orders_.OnReply(Next(2, 1, 0)));
  EXPECT_EQ(orders_.wanted().fence, 2u);
  EXPECT_FALSE(orders_.wanted().placement.has_value());
  EXPECT_FALSE(orders_.OnReply(Next(2, 1, 0))) << "known";
}

TEST_F(LaneOrdersTest, PlaceOnceWhetherTheNextViewOrTheViewComesFirst) {
  orders_.OnView(MakeView(1, 1, 1));
  EXPECT_FALSE(orders_.Joins(MakeView(2, 1, 2))) << "it has begun";
  EXPECT_TRUE(orders_.OnReply(Next(2, 1, 2)));
  EXPECT_EQ(orders_.wanted().placement->placement(), 2u);
  orders_.OnView(MakeView(2, 1, 2));
  EXPECT_FALSE(orders_.OnReply(Next(2, 1, 2)));
  orders_.OnView(MakeView(3, 1, 3));  // its next view was missed
  EXPECT_EQ(orders_.wanted().placement->placement(), 3u);
}

TEST_F(LaneOrdersTest, JoinInTheMiddleOfATimelineWithoutAView) {
  EXPECT_FALSE(orders_.Joins(Next(5, 2, 0).next_view()));
  EXPECT_TRUE(orders_.Joins(MakeView(5, 2, 5)));
  EXPECT_TRUE(orders_.OnReply(Next(5, 2, 5)));
  EXPECT_EQ(orders_.wanted().view, 0u);
  EXPECT_EQ(orders_.wanted().fence, 5u);
  EXPECT_FALSE(orders_.wanted().placement.has_value()) << "the lane begins with it";
}

TEST_F(LaneOrdersTest, AreForgottenWithTheirTimeline) {
  orders_.OnView(MakeView(1, 1, 1));
  HeartbeatReply reply = Next(2, 1, 2);
  reply.set_final_version(7);
  reply.mutable_schedule()->set_number(3);
  EXPECT_TRUE(orders_.OnReply(reply));
  orders_.OnView(MakeView(4, 2, 4));
  EXPECT_EQ(orders_.wanted().view, 4u);
  EXPECT_EQ(orders_.wanted().fence, 0u);
  EXPECT_EQ(orders_.wanted().final_version, 0u);
  EXPECT_EQ(orders_.wanted().schedule, 0u);
  EXPECT_FALSE(orders_.wanted().placement.has_value());
}

TEST_F(LaneOrdersTest, KeepTheNewestScheduleAndTheLastFinalStep) {
  orders_.OnView(MakeView(1, 1, 1));
  HeartbeatReply reply;
  reply.set_final_version(7);
  reply.mutable_schedule()->set_number(3);
  reply.mutable_schedule()->set_pull_credit_bytes(30);
  EXPECT_TRUE(orders_.OnReply(reply));
  reply.mutable_schedule()->set_number(2);
  reply.mutable_schedule()->set_pull_credit_bytes(20);
  EXPECT_FALSE(orders_.OnReply(reply));
  EXPECT_EQ(orders_.wanted().pull_credit_bytes, 30u);
  reply.set_final_version(5);
  EXPECT_TRUE(orders_.OnReply(reply));
  EXPECT_EQ(orders_.wanted().final_version, 5u);
}

}  // namespace
}  // namespace tug
