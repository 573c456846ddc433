// SPDX-License-Identifier: Apache-2.0
// Tests placement.kind MIXED, where owned bytes depend on the hosts of nodes.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using Hosts = std::vector<uint64_t>;

constexpr uint64_t kSegmentBytes = 10;
constexpr size_t kSegments = 2200;

CoordinatorOptions Options(uint32_t servers, uint32_t workers, PlacementConfig::Kind kind) {
  CoordinatorOptions options = JobUnderTest::Options(servers, workers, 10, 0, workers);
  options.config.mutable_placement()->set_kind(kind);
  options.layout.segment_bytes.assign(kSegments, kSegmentBytes);
  return options;
}

void Join(JobUnderTest& job, NodeKind kind, uint64_t incarnation, uint64_t host) {
  RegisterRequest request = job.Request(kind, incarnation);
  request.set_host_id(host);
  if (kind == SERVER) {
    for (int lane = 0; lane < 2; ++lane) {
      request.add_lane_endpoints("tcp://h:" + std::to_string(incarnation * 10) +
                                 std::to_string(lane));
    }
  }
  ASSERT_TRUE(job.coordinator().OnRegister(request, job.now()).ok());
}

// Segments owned, by server in the order they joined; of kSegments equal ones.
std::vector<uint64_t> Dealt(const View& view) {
  std::map<uint32_t, uint64_t> segments;
  for (const Lane& lane : view.lanes()) segments[lane.server_node_id()] = 0;
  for (const uint32_t lane : view.lane_of_segment()) {
    ++segments[view.lanes(static_cast<int>(lane)).server_node_id()];
  }
  std::vector<uint64_t> dealt;
  for (const auto& [server, count] : segments) dealt.push_back(count);
  return dealt;
}

std::vector<uint64_t> DealtTo(const Hosts& servers, const Hosts& workers,
                              PlacementConfig::Kind kind) {
  JobUnderTest job(
      Options(static_cast<uint32_t>(servers.size()), static_cast<uint32_t>(workers.size()), kind));
  uint64_t incarnation = 0;
  for (const uint64_t host : servers) Join(job, SERVER, ++incarnation, host);
  for (const uint64_t host : workers) Join(job, WORKER, ++incarnation, host);
  return Dealt(job.Send(job.Beat(1)).view());
}

TEST(CoordinatorMixed, DealsBytesSoThatLinksAreEquallyBusy) {
  // n = 3, k = 2: 1 / 11 and 4 / 11 of all bytes.
  EXPECT_THAT(DealtTo({11, 12, 13, 21, 22}, {11, 12, 13}, PlacementConfig::MIXED),
              ElementsAre(200, 200, 200, 800, 800));
  // k = n: servers next to workers own nothing.
  EXPECT_THAT(DealtTo({11, 12, 21, 22}, {11, 12}, PlacementConfig::MIXED),
              ElementsAre(0, 0, 1100, 1100));
}

TEST(CoordinatorMixed, OnOneHostAndInOtherPlacementsPartsAreEqual) {
  EXPECT_THAT(DealtTo({11, 11, 11, 11}, {11, 11}, PlacementConfig::MIXED),
              ElementsAre(550, 550, 550, 550));
  EXPECT_THAT(DealtTo({11, 12, 21, 22}, {11, 12}, PlacementConfig::SERVERS),
              ElementsAre(550, 550, 550, 550));
}

TEST(CoordinatorMixed, AServerThatJoinsChangesTheParts) {
  JobUnderTest job(Options(4, 3, PlacementConfig::MIXED));
  for (uint64_t i = 0; i < 4; ++i)
    Join(job, SERVER, 1 + i, 11 + i);  // the last one on a host of its own
  for (uint64_t i = 0; i < 3; ++i) Join(job, WORKER, 101 + i, 11 + i);
  std::vector<NodeUnderTest> nodes;
  for (uint32_t id = 1; id <= 7; ++id) nodes.emplace_back(job, id, 3);
  const auto settle = [&] {
    for (int round = 0; round < 12; ++round) {
      for (NodeUnderTest& node : nodes) node.Beat();
    }
  };
  settle();
  // n = 3, k = 1: 2 / 10 and 4 / 10.
  EXPECT_THAT(Dealt(nodes[0].view), ElementsAre(440, 440, 440, 880));
  Join(job, SERVER, 9, 15);
  nodes.emplace_back(job, 8, 3);
  settle();
  EXPECT_THAT(Dealt(nodes[0].view), ElementsAre(200, 200, 200, 800, 800));
}

}  // namespace
}  // namespace tug
