// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/worker_timeline_svg.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/experiment/charts/well_formed.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(WorkerTimelinesSvg, EndsWithTheSlowestWorkersSteps) {
  const std::vector<WorkerTimeline> workers = {
      {0, {{1, {0, 0.4}, {}}, {2, {0.4, 0.8}, {}}}},
      {1, {{1, {0, 0.1}, {}}, {2, {0.1, 0.2}, {{0.1, 0.15}}}, {3, {0.9, 1}, {}}}}};
  const std::string svg = WorkerTimelinesSvg({{"asp", "", &workers}}, 2, 0);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, AllOf(HasSubstr("slowstep"), HasSubstr("step 2 waits for weights, 50.0 ms"),
                         Not(HasSubstr("step 3"))))
      << "it begins after the slow worker's second";
  EXPECT_EQ(WorkerTimelinesSvg({}, 2, 0), "");
}

}  // namespace
}  // namespace tug
