// SPDX-License-Identifier: Apache-2.0
#include "lab/recorded/recorded_run.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OrderLog Log(uint32_t lane, std::vector<OrderRecord> records) {
  return {.header = {.timeline = 1, .lane = lane, .lanes = 2, .virtual_workers = 2, .segments = 2},
          .records = std::move(records),
          .complete = true};
}

// Two virtual workers, one step each; segment 0 on lane 0, segment 1 on lane 1.
std::vector<OrderLog> Logs() {
  return {Log(0, {{.segment = 0, .virtual_worker = 1, .version = 1, .weights_version = 0},
                  {.segment = 0, .virtual_worker = 0, .version = 2, .weights_version = 0}}),
          Log(1, {{.segment = 1, .virtual_worker = 0, .version = 1, .weights_version = 0},
                  {.segment = 1, .virtual_worker = 1, .version = 2, .weights_version = 1}})};
}

std::string Error(const std::vector<OrderLog>& logs) {
  return std::string(AssembleRun(logs).status().message());
}

TEST(AssembleRun, OrdersStepsByVirtualWorkerAndUpdatesBySegment) {
  const auto run = AssembleRun(Logs());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->update_count(), 4u);
  ASSERT_EQ(run->steps.size(), 2u);
  EXPECT_EQ(run->steps[1].virtual_worker, 1u);
  EXPECT_THAT(run->steps[1].weights_version, ElementsAre(0, 1));
  EXPECT_EQ(run->updates[0][0].step, 1u);
  EXPECT_EQ(run->updates[1][0].step, 0u);
}

TEST(AssembleRun, NamesNoVersionOfWeightsThatAStepDoesNotRead) {
  std::vector<OrderLog> logs = Logs();
  logs[1].records[1].flags = OrderRecord::kUntouched;
  const auto run = AssembleRun(logs);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[1].weights_version, ElementsAre(0, kAnyVersion));
  EXPECT_EQ(run->updates[1][1].weights_version, 1u);
  logs[1].records.push_back(logs[1].records[1]);
  logs[1].records[2].version = 3;
  EXPECT_THAT(Error(logs), HasSubstr("does not follow")) << "one step makes two updates";
}

TEST(AssembleRun, RefusesWhatIsNotWhole) {
  std::vector<OrderLog> logs = Logs();
  logs[1].complete = false;
  EXPECT_THAT(Error(logs), HasSubstr("lane 1 has no end"));
  logs = Logs();
  logs[0].records.pop_back();
  EXPECT_THAT(Error(logs), HasSubstr("no update of segment 0 by virtual worker 0"));
  logs = Logs();
  logs[0].records[1].version = 3;
  EXPECT_THAT(Error(logs), HasSubstr("version 3 of segment 0 does not follow"));
  logs = Logs();
  logs[0].records[1].virtual_worker = 1;
  EXPECT_THAT(Error(logs), HasSubstr("does not follow")) << "one step makes two updates";
  logs = Logs();
  logs[0].records[0].weights_version = 1;
  EXPECT_THAT(Error(logs), HasSubstr("does not follow")) << "of weights that come of it";
  logs = Logs();
  logs[0].records[0].flags = OrderRecord::kInexact;
  EXPECT_THAT(Error(logs), HasSubstr("cannot be recomputed"));
  logs = Logs();
  logs[0].header.start_version = 25;
  EXPECT_THAT(Error(logs), HasSubstr("from the checkpoint of step 25"));
}

}  // namespace
}  // namespace tug
