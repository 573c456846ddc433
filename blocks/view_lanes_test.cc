// SPDX-License-Identifier: Apache-2.0
#include "blocks/view_lanes.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Servers 3 and 5 with one lane each, workers 4 and 6; three segments.
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
  const ViewRequest request = ViewRequestOf(view, WorkerPeer(4), JobConfig());
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

// Host 7 has servers 3 (two lanes) and 4, host 8 has 5, host 9 has 6; the view has the servers in
// the order 5, 3, 6, 4. Workers 10, 11, 12, 13 are on hosts 7, 8, 6, and an unknown one.
View FourServers() {
  View view;
  const auto add = [&](uint32_t server, uint32_t index, uint64_t host) {
    Lane& lane = *view.add_lanes();
    lane.set_server_node_id(server);
    lane.set_index_on_server(index);
    lane.set_host_id(host);
  };
  add(5, 0, 8);
  add(3, 0, 7);
  add(3, 1, 7);
  add(6, 0, 9);
  add(4, 0, 7);
  const uint64_t hosts[] = {7, 8, 6, 0};
  for (uint32_t worker = 0; worker < 4; ++worker) {
    WorkerAssignment& place = *view.add_workers();
    place.set_node_id(10 + worker);
    place.set_host_id(hosts[worker]);
  }
  return view;
}

JobConfig WithCache() {
  JobConfig config;
  config.mutable_placement()->set_host_weight_cache(true);
  return config;
}

TEST(PullLanes, HostLanesAnswerForRemoteLanesInTurn) {
  const View view = FourServers();
  const uint32_t a = LaneNumber(5, 0), b = LaneNumber(6, 0);
  EXPECT_THAT(PullLanesFor(view, WorkerPeer(10), WithCache()),
              ElementsAre(Pair(a, LaneNumber(3, 0)), Pair(b, LaneNumber(3, 1))));
  const uint32_t self = LaneNumber(5, 0);
  EXPECT_THAT(PullLanesFor(view, WorkerPeer(11), WithCache()),
              ElementsAre(Pair(LaneNumber(3, 0), self), Pair(LaneNumber(3, 1), self),
                          Pair(LaneNumber(4, 0), self), Pair(b, self)));
  EXPECT_EQ(ViewRequestOf(view, WorkerPeer(10), WithCache()).pull_lanes, PullLanesOn(view, 7));
}

TEST(PullLanes, AreTheOwnersOnAHostWithoutALane) {
  const View view = FourServers();
  EXPECT_THAT(PullLanesFor(view, WorkerPeer(12), WithCache()), IsEmpty());
  EXPECT_THAT(PullLanesFor(view, WorkerPeer(13), WithCache()), IsEmpty()) << "host not known";
  EXPECT_THAT(PullLanesFor(view, WorkerPeer(99), WithCache()), IsEmpty()) << "not in the view";
  EXPECT_THAT(PullLanesFor(view, WorkerPeer(10), JobConfig()), IsEmpty()) << "without the cache";
}

TEST(PullLanes, ALaneKnowsForWhomItStandsIn) {
  const View view = FourServers();
  EXPECT_THAT(CachedLanes(view, LaneNumber(3, 0)), ElementsAre(LaneNumber(5, 0)));
  EXPECT_THAT(CachedLanes(view, LaneNumber(3, 1)), ElementsAre(LaneNumber(6, 0)));
  EXPECT_THAT(CachedLanes(view, LaneNumber(4, 0)), IsEmpty());
  EXPECT_EQ(CachedLanes(view, LaneNumber(6, 0)).size(), 4u);
}

}  // namespace
}  // namespace tug
