// SPDX-License-Identifier: Apache-2.0
#include "process/run_end.h"

#include <filesystem>
#include <fstream>

#include "coordinator/observe/run_folder.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

std::optional<RunEnd> EndOf(const std::string& metrics) {
  const std::string folder = testing::TempDir() + "/run_end_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + kMetricsFile) << metrics;
  return ReadRunEnd(folder);
}

TEST(RunEnd, IsTheLastLineOfARunThatEndedInOrder) {
  const std::optional<RunEnd> end = EndOf(
      "{\"kind\":\"step\",\"step\":7}\n"
      "{\"kind\":\"end\",\"timeline\":1,\"step\":7,\"reason\":\"stopped\"}\n");
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->reason, "stopped");
  EXPECT_EQ(end->step, 7u);
}

TEST(RunEnd, ARunThatGoesOnHasNone) {
  EXPECT_FALSE(
      EndOf("{\"kind\":\"end\",\"step\":7,\"reason\":\"done\"}\n"
            "{\"kind\":\"step\",\"step\":8}\n"));
  EXPECT_FALSE(EndOf("{\"kind\":\"end\",\"step\":7,\"rea"));
  EXPECT_FALSE(EndOf(""));
  EXPECT_FALSE(ReadRunEnd("/nonexistent"));
}

}  // namespace
}  // namespace tug
