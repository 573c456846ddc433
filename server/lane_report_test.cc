// SPDX-License-Identifier: Apache-2.0
#include "server/lane_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tug {
namespace {

using testing::ElementsAre;

LaneReport Report(std::vector<uint64_t> clocks, uint32_t view) {
  LaneReport report;
  report.ready = true;
  report.progress = {.view = view,
                     .schedule = view,
                     .clocks = std::move(clocks),
                     .clocks_of_view = view,
                     .copied_placement = view};
  return report;
}

HeartbeatRequest Merged(const std::vector<LaneReport>& lanes) {
  HeartbeatRequest request;
  AddReports(lanes, absl::UnixEpoch(), request);
  return request;
}

TEST(AddReports, TakesTheMinimumOfClocksOfOneView) {
  const HeartbeatRequest request = Merged({Report({4, 2}, 3), Report({3, 5}, 3)});
  EXPECT_THAT(request.clocks(), ElementsAre(3, 2));
  EXPECT_EQ(request.clocks_of_view(), 3u);
}

TEST(AddReports, HasNoClocksUntilAllLanesAreInOneView) {
  EXPECT_EQ(Merged({Report({4, 2}, 3), Report({3, 5}, 2)}).clocks_size(), 0);
  EXPECT_EQ(Merged({Report({4, 2}, 3), Report({}, 0)}).clocks_size(), 0);
}

TEST(AddReports, IsAsFarAsTheLaneThatIsBehind) {
  LaneReport behind = Report({1}, 2);
  behind.ready = false;
  const HeartbeatRequest request = Merged({Report({1}, 3), behind});
  EXPECT_FALSE(request.ready());
  EXPECT_EQ(request.schedule(), 2u);
  EXPECT_EQ(request.copied_placement(), 2u);
}

TEST(AddReports, CountsWhatPeersReadInSharedMemory) {
  std::vector<LaneReport> lanes = {Report({1}, 3), Report({1}, 3)};
  lanes[0].figures.sent_bytes = 100;
  lanes[0].figures.socket_bytes = 30;
  lanes[1].figures.sent_bytes = 7;
  const HeartbeatRequest request = Merged(lanes);
  EXPECT_EQ(request.counters().socket_bytes(), 30u);
  EXPECT_EQ(request.counters().shared_memory_bytes(), 77u);
}

TEST(AddReports, NamesTheAlgorithmsOfTheAllReduce) {
  LaneReport lane = Report({1}, 3);
  lane.algorithms = {"ring"};
  EXPECT_THAT(Merged({lane}).activity().algorithms(), ElementsAre("ring"));
}

TEST(LaneReport, KeepsOneNoticePerKeyUpToALimit) {
  LaneReport report;
  report.AddNotice({"a", "first"});
  report.AddNotice({"a", "second"});
  ASSERT_EQ(report.notices.size(), 1u);
  EXPECT_EQ(report.notices[0].text, "first");
  for (size_t i = 0; i < 2 * LaneReport::kMaxNotices; ++i) {
    report.AddNotice({std::to_string(i), "text"});
  }
  EXPECT_EQ(report.notices.size(), LaneReport::kMaxNotices);
}

TEST(LaneProgress, ServesOnceItIsInTheNewestCompleteView) {
  EXPECT_FALSE((LaneProgress{.view = 5}.Serves({.fence = 5}))) << "joined, and has no view yet";
  EXPECT_FALSE((LaneProgress{.view = 4}.Serves({.view = 5})));
  EXPECT_TRUE((LaneProgress{.view = 5}.Serves({.view = 5})));
}

}  // namespace
}  // namespace tug
