// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/timeline.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Row = TimelineSpan::Row;

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

std::string Span(const std::string& category, const std::string& block, int node, int step,
                 int begin_us, int length_us) {
  return R"({"ph":"X","name":")" + category + " " + block + R"(","cat":")" + category +
         R"(","pid":)" + std::to_string(node) + R"(,"tid":0,"ts":)" + std::to_string(begin_us) +
         ".000,\"dur\":" + std::to_string(length_us) + R"(.000,"args":{"step":)" +
         std::to_string(step) + "}},\n";
}

const std::vector<std::string> kBlocks = {"a", "b"};

TEST(Timeline, IsOfTheFirstWorkerFromItsBackwardPassOn) {
  const std::string path = Write(
      "trace.json",
      R"({"steps":[],"traceEvents":[{"ph":"M","name":"process_name","pid":2,"args":{"name":"s"}},)" +
          Span("push", "b", 2, 7, 0, 5) +        // of a server, which computes nothing
          Span("forward", "a", 3, 7, 100, 50) +  // before the cycle
          Span("backward", "b", 3, 7, 1000, 500) + Span("backward", "a", 3, 7, 1500, 500) +
          Span("push", "b", 3, 7, 1500, 1000) + Span("pull", "b", 3, 7, 2000, 1000) +
          Span("queue", "b", 3, 7, 1500, 1) + Span("pull", "b", 3, 6, 900, 1000) +
          Span("forward", "a", 3, 8, 4000, 500) + Span("forward", "b", 3, 8, 4500, 500) +
          Span("backward", "b", 3, 8, 5000, 500) + Span("backward", "b", 4, 7, 1001, 500) +
          R"({"ph":"s","name":"push to pull","id":1}]})");
  const auto timeline = ReadTimeline(path, 7, kBlocks);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_NEAR(timeline->seconds, 4e-3, 1e-9);
  ASSERT_EQ(timeline->spans.size(), 6u);
  EXPECT_EQ(timeline->spans[0].row, Row::kBackward);
  EXPECT_EQ(timeline->spans[0].block, 1u);
  EXPECT_NEAR(timeline->spans[0].begin_seconds, 0, 1e-9);
  EXPECT_NEAR(timeline->spans[2].end_seconds, 1.5e-3, 1e-9);
}

TEST(Timeline, SaysWhatIsMissing) {
  EXPECT_EQ(ReadTimeline("/nowhere/trace.json", 1, kBlocks).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadTimeline(Write("bad.json", "{"), 1, kBlocks).status().message()),
              HasSubstr("bad.json is not a trace"));
  EXPECT_THAT(std::string(ReadTimeline(Write("other.json", "{}"), 1, kBlocks).status().message()),
              HasSubstr("other.json is not a trace"));
  const std::string empty = Write("empty.json", R"({"traceEvents":[]})");
  EXPECT_THAT(std::string(ReadTimeline(empty, 3, kBlocks).status().message()),
              HasSubstr("has no worker with both step 3 and the step after it"));
}

TEST(InSequence, DrawsWhatIsSideBySideByArrival) {
  const Timeline timeline{.spans = {{Row::kPush, 1, 0, 4},
                                    {Row::kPush, 1, 0, 2},
                                    {Row::kPull, 0, 0, 9},
                                    {Row::kPush, 0, 3, 5},
                                    {Row::kPush, 0, 7, 8}},
                          .seconds = 9};
  EXPECT_THAT(InSequence(timeline, Row::kPush),
              ElementsAre(TimelineSpan{Row::kPush, 1, 0, 4}, TimelineSpan{Row::kPush, 0, 4, 5},
                          TimelineSpan{Row::kPush, 0, 7, 8}));
  EXPECT_TRUE(InSequence(timeline, Row::kForward).empty());
}

}  // namespace
}  // namespace tug
