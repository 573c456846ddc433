// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/blame.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;
constexpr char kLink[] = "link worker-1 to server-0";

StepPath Path(uint64_t clock, int64_t backward_ms, int64_t push_ms, int64_t other_ms) {
  StepPath path{.clock = clock, .end_ns = (backward_ms + push_ms + other_ms) * kMs};
  int64_t at_ns = 0;
  const auto add = [&](PathWork what, const char* who, int64_t ms) {
    if (ms > 0) path.parts.push_back({what, who, "b", at_ns, at_ns + ms * kMs});
    at_ns += ms * kMs;
  };
  add(PathWork::kBackward, "worker-1", backward_ms / 2);
  add(PathWork::kPush, kLink, push_ms);
  add(PathWork::kUnexplained, "worker-2", other_ms);
  add(PathWork::kBackward, "worker-1", backward_ms - backward_ms / 2);
  return path;
}

TEST(Blame, AddsPartsUpByWhatAndWho) {
  const StepPath path = Path(4, 40, 50, 10);
  EXPECT_THAT(SharesOf(path), ElementsAre(PathShare{PathWork::kPush, kLink, 0.05},
                                          PathShare{PathWork::kBackward, "worker-1", 0.04},
                                          PathShare{PathWork::kUnexplained, "worker-2", 0.01}));
}

TEST(Blame, HasPartsOverAllStepsAndTheirSpread) {
  const Blame blame = BlameOf({Path(4, 40, 50, 10), Path(5, 80, 20, 0), Path(6, 60, 40, 0)});
  EXPECT_EQ(blame.steps, 3u);
  EXPECT_DOUBLE_EQ(blame.step_seconds, 0.1);
  ASSERT_EQ(blame.rows.size(), 3u);
  const BlameRow& first = blame.rows[0];
  EXPECT_EQ(first.what, PathWork::kBackward);
  EXPECT_DOUBLE_EQ(first.part, 0.6);
  EXPECT_DOUBLE_EQ(first.median_part, 0.6);
  EXPECT_DOUBLE_EQ(first.least_part, 0.4);
  EXPECT_DOUBLE_EQ(first.most_part, 0.8);
  EXPECT_EQ(first.steps, 2u);
  EXPECT_DOUBLE_EQ(blame.rows[2].median_part, 0) << "two steps have none of it";
  EXPECT_NEAR(blame.unexplained_part, 0.1 / 3, 1e-12);
  ASSERT_EQ(blame.workers.size(), 1u);
  EXPECT_EQ(blame.workers[0].who, "worker-1");
  EXPECT_EQ(blame.workers[0].steps, 3u);
}

TEST(Blame, BlamesWorkerOnlyForItsOwnWork) {
  StepPath path = Path(4, 20, 0, 80);
  path.parts.push_back({PathWork::kWait, "worker-3", "b", path.end_ns, path.end_ns + 50 * kMs});
  path.end_ns += 50 * kMs;
  const Blame blame = BlameOf({path});
  ASSERT_EQ(blame.workers.size(), 1u);
  EXPECT_EQ(blame.workers[0].who, "worker-1");
  EXPECT_NEAR(blame.workers[0].part, 20.0 / 150, 1e-12);
  EXPECT_THAT(BlameLines(BlameOf({Path(4, 0, 0, 80)})).back(),
              "worker with the largest part, in 1 steps: none; not explained: 100.0%");
}

TEST(Blame, IsThreeLines) {
  EXPECT_THAT(
      BlameLines(BlameOf({Path(4, 40, 50, 10), Path(5, 80, 20, 0)})),
      ElementsAre(
          "critical path of 2 steps, 100.0 ms each: worker-1 backward 60%, link worker-1 "
          "to server-0 (push) 35%, worker-2 unexplained 5%",
          "largest part of a step, in 2 steps: worker-1 backward in 1, link worker-1 to server-0 "
          "(push) in 1",
          "worker with the largest part, in 2 steps: worker-1 in 2; not explained: 5.0%"));
  EXPECT_THAT(BlameLines(BlameOf({})), IsEmpty());
}

}  // namespace
}  // namespace tug
