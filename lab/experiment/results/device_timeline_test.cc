// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/device_timeline.h"

#include <cmath>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using Kind = DeviceSpan::Kind;

std::string Written(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/trace.json";
  std::ofstream(path) << text;
  return path;
}

std::string Pass(const char* kind, uint32_t tid, int step, int begin_ms, int ms) {
  return absl::StrCat("{\"ph\":\"X\",\"cat\":\"", kind, "\",\"name\":\"", kind,
                      " a\",\"pid\":3,\"tid\":", tid, ",\"ts\":", begin_ms * 1000,
                      ",\"dur\":", ms * 1000, ",\"args\":{\"step\":", step, "}},\n");
}

// A worker, node 3, whose compute thread (tid 1) queues the work of a device (tid 2). Node 1 is a
// server.
std::string Trace(bool has_device) {
  std::string text = "{\"traceEvents\":[\n" + Pass("step", 1, 1, 1000, 40);
  absl::StrAppend(&text, Pass("forward", 1, 1, 1000, 1), Pass("backward", 1, 1, 1001, 39));
  if (has_device) {
    absl::StrAppend(&text, Pass("forward", 2, 1, 1000, 10), Pass("backward", 2, 1, 1010, 20),
                    Pass("forward", 2, 2, 1100, 10), Pass("forward", 2, 2, 1115, 10),
                    Pass("backward", 2, 2, 1127, 23));
  }
  return text +
         "{\"ph\":\"X\",\"cat\":\"optimizer\",\"name\":\"optimizer a\",\"pid\":1,\"tid\":1,"
         "\"ts\":1000000,\"dur\":60000,\"args\":{\"step\":1}},\n"
         "{\"ph\":\"X\",\"cat\":\"optimizer\",\"name\":\"optimizer b\",\"pid\":2,\"tid\":1,"
         "\"ts\":1000000,\"dur\":70000,\"args\":{\"step\":1}}\n]}";
}

TEST(DeviceTimeline, IsOfTheDeviceWhereThereIsOneElseOfTheComputeThread) {
  const auto gpu = ReadDeviceTimeline(Written(Trace(true)));
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_TRUE(gpu->on_gpu);
  EXPECT_EQ(gpu->spans.size(), 5u);
  EXPECT_NEAR(gpu->updated_at.at(1), 0.070, 1e-9) << "of all servers the last";
  const auto cpu = ReadDeviceTimeline(Written(Trace(false)));
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_FALSE(cpu->on_gpu);
  ASSERT_EQ(cpu->spans.size(), 2u);
  EXPECT_EQ(cpu->spans[1].kind, Kind::kBackward);
  EXPECT_NEAR(cpu->spans[1].end_seconds, 0.040, 1e-9);
}

TEST(DeviceTimeline, TellsWhatTheDeviceStandsStillFor) {
  const auto timeline = ReadDeviceTimeline(Written(Trace(true)));
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  const std::vector<DeviceStep> steps = DeviceSteps(*timeline);
  ASSERT_EQ(steps.size(), 1u) << "the first has none before it";
  EXPECT_EQ(steps[0].step, 2u);
  EXPECT_NEAR(steps[0].seconds(), 0.120, 1e-9);
  EXPECT_NEAR(steps[0].bp_bubble_seconds, 0.040, 1e-9) << "until all weights are made";
  EXPECT_NEAR(steps[0].fp_bubble_seconds, 0.035, 1e-9) << "30 ms, and 5 between passes";
  EXPECT_NEAR(steps[0].other_seconds, 0.002, 1e-9);
  EXPECT_NEAR(steps[0].busy_seconds, 0.043, 1e-9);
  EXPECT_NEAR(Utilisation(steps), 43.0 / 120, 1e-9);
  EXPECT_TRUE(std::isnan(Utilisation({})));
}

// The forward pass continues while weights of later blocks are made.
TEST(DeviceTimeline, ABpBubbleEndsWithTheForwardPassThatNeedNotWait) {
  DeviceTimeline timeline{.spans = {{Kind::kBackward, 1, 0, 1}, {Kind::kForward, 2, 3, 4}},
                          .updated_at = {{1, 9.0}}};
  EXPECT_EQ(DeviceSteps(timeline).at(0).bp_bubble_seconds, 2);
  EXPECT_EQ(DeviceSteps(timeline).at(0).fp_bubble_seconds, 0);
  timeline.updated_at[1] = 0.5;
  EXPECT_EQ(DeviceSteps(timeline).at(0).bp_bubble_seconds, 0);
  EXPECT_EQ(DeviceSteps(timeline).at(0).fp_bubble_seconds, 2);
}

TEST(DeviceTimeline, UtilisationOverTimeIsThePartOfEachWindow) {
  const DeviceTimeline timeline{
      .spans = {{Kind::kForward, 1, 0, 1.5}, {Kind::kBackward, 1, 2.25, 2.75}}};
  const auto near = [](double value) { return DoubleNear(value, 1e-9); };
  EXPECT_THAT(UtilisationOver(timeline, 0, 4, 4),
              ElementsAre(near(1), near(0.5), near(0.5), near(0)));
  EXPECT_THAT(UtilisationOver(timeline, 1, 3, 2), ElementsAre(near(0.5), near(0.5)));
}

TEST(DeviceTimeline, RefusesFileThatIsNotATrace) {
  for (const char* text : {"", "[1]", R"({"traceEvents":[{"ph":"X"}]})", R"({"traceEvents":[]})"}) {
    EXPECT_EQ(ReadDeviceTimeline(Written(text)).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_EQ(ReadDeviceTimeline("/nowhere").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tug
