#include "exchange/view_lanes.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;

// Servers 3 and 5 with a lane each, workers 4 and 6; three segments.
View TwoServers(bool beside) {
  View view;
  for (const uint32_t server : {3u, 5u}) {
    Lane& lane = *view.add_lanes();
    lane.set_server_node_id(server);
    lane.set_endpoint("tcp://h:" + std::to_string(server));
  }
  for (const uint32_t lane : {0u, 1u, 0u}) view.add_lane_of_segment(lane);
  for (const uint32_t worker : {4u, 6u}) {
    WorkerAssignment& place = *view.add_workers();
    place.set_node_id(worker);
    if (beside) place.set_server_node_id(worker == 4 ? 5 : 3);
  }
  return view;
}

TEST(ViewLanes, AWorkerExchangesEachSegmentWithItsOwner) {
  const View view = TwoServers(/*beside=*/false);
  EXPECT_EQ(LanesFor(view, WorkerPeer(4)).size(), 2u);
  EXPECT_THAT(LaneNumberOfSegmentFor(view, WorkerPeer(4)),
              ElementsAre(LaneNumber(3, 0), LaneNumber(5, 0), LaneNumber(3, 0)));
}

TEST(ViewLanes, AWorkerWithAServerBesideItExchangesAllSegmentsWithThat) {
  const View view = TwoServers(/*beside=*/true);
  const ViewRequest request = ViewRequestOf(view, WorkerPeer(4));
  ASSERT_EQ(request.lanes.size(), 1u);
  EXPECT_EQ(request.lanes[0].endpoint, "tcp://h:5");
  const uint32_t lane = LaneNumber(5, 0);
  EXPECT_THAT(request.lane_of_segment, ElementsAre(lane, lane, lane));
  EXPECT_EQ(LanesFor(view, LanePeer(lane)).size(), 2u) << "lanes connect to all";
}

TEST(ViewLanes, RanksAreInTheOrderOfWorkers) {
  EXPECT_THAT(ReducingLanes(TwoServers(/*beside=*/true)),
              ElementsAre(LanePeer(LaneNumber(5, 0)), LanePeer(LaneNumber(3, 0))));
}

}  // namespace
}  // namespace tug
