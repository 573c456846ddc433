// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/worker_timeline.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

std::string Written(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/trace.json";
  std::ofstream(path) << text;
  return path;
}

// Node 3 runs virtual worker 1, node 4 virtual worker 0; node 1 is a server.
constexpr char kTrace[] = R"({"traceEvents":[
{"ph":"M","name":"process_name","pid":3,"tid":0,"args":{"name":"worker-2"
}
},
{"ph":"X","cat":"step","name":"step 1","pid":3,"tid":0,"ts":1000000,"dur":400000,"args":{"step":1}},
{"ph":"X","cat":"forward","name":"forward a","pid":3,"tid":0,"ts":1000000,"dur":9,"args":{"step":1,"virtual_worker":1}},
{"ph":"X","cat":"step","name":"step 2","pid":3,"tid":0,"ts":1400000,"dur":600000,"args":{"step":2}},
{"ph":"X","cat":"wait","name":"wait b","pid":3,"tid":0,"ts":1600005,"dur":199995,"args":{"step":2}},
{"ph":"X","cat":"wait","name":"wait a","pid":3,"tid":0,"ts":1300000,"dur":300000,"args":{"step":2}},
{"ph":"X","cat":"step","name":"step 1","pid":4,"tid":0,"ts":1100000,"dur":500000,"args":{"step":1}},
{"ph":"X","cat":"forward","name":"forward a","pid":4,"tid":0,"ts":1100000,"dur":9,"args":{"step":1,"virtual_worker":0}},
{"ph":"X","cat":"sum","name":"sum a","pid":1,"tid":0,"ts":900000,"dur":9,"args":{"step":1,"virtual_worker":0,"worker":"worker-2"}}
]
})";

TEST(WorkerTimeline, HasStepsAndWaitsOfEveryWorkerFromTheFirstStepOn) {
  const auto workers = ReadWorkerTimelines(Written(kTrace));
  ASSERT_TRUE(workers.ok()) << workers.status();
  ASSERT_EQ(workers->size(), 2u);
  EXPECT_EQ((*workers)[0].virtual_worker, 0u);
  ASSERT_EQ((*workers)[0].steps.size(), 1u);
  EXPECT_NEAR((*workers)[0].steps[0].whole.begin_seconds, 0.1, 1e-9);
  EXPECT_TRUE((*workers)[0].steps[0].waits.empty());
  const std::vector<WorkerStep>& steps = (*workers)[1].steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].whole.begin_seconds, 0);
  // A wait that crosses the end of a step belongs to both steps; touching waits are merged.
  ASSERT_EQ(steps[0].waits.size(), 1u);
  EXPECT_NEAR(steps[0].waits[0].end_seconds, 0.4, 1e-9);
  ASSERT_EQ(steps[1].waits.size(), 1u);
  EXPECT_NEAR(steps[1].waits[0].begin_seconds, 0.4, 1e-9);
  EXPECT_NEAR(steps[1].waits[0].end_seconds, 0.8, 1e-9);
}

TEST(WorkerTimeline, EndOfStepsIsThatOfTheSlowestWorker) {
  const std::vector<WorkerTimeline> workers = {
      {0, {{1, {0, 4}, {}}, {2, {4, 8}, {}}}},
      {1, {{1, {0, 1}, {}}, {2, {1, 2}, {}}, {3, {2, 3}, {}}}}};
  EXPECT_EQ(EndOfSteps(workers, 1), 4);
  EXPECT_EQ(EndOfSteps(workers, 2), 8);
  EXPECT_EQ(EndOfSteps(workers, 9), 8) << "nobody did so many";
}

TEST(WorkerTimeline, RefusesFileThatIsNotATrace) {
  for (const char* text : {"", "[1]", R"({"traceEvents":[{"ph":"X"}]})", R"({"traceEvents":[]})"}) {
    EXPECT_EQ(ReadWorkerTimelines(Written(text)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_EQ(ReadWorkerTimelines("/nowhere").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tug
