// SPDX-License-Identifier: Apache-2.0
#include "explain/explain_text.h"

#include <string>
#include <vector>

#include "explain/path_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using ::testing::HasSubstr;

constexpr char kTrace[] = R"({"traceEvents":[],"critical_path":[
  {"step":5,"begin_us":1000.0,"seconds":0.1,"parts":[
    {"what":"backward","who":"worker-1","block":"h.1","begin_us":1000.0,"us":60000.0},
    {"what":"push","who":"link worker-1 to server-0","block":"h.1","begin_us":61000.0,"us":39600.0},
    {"what":"sum","who":"server-0","block":"h.1","begin_us":100600.0,"us":400.0}]}]})";

std::vector<StepPath> Paths() {
  const auto paths = PathsIn(nlohmann::json::parse(kTrace), "t");
  EXPECT_TRUE(paths.ok()) << paths.status();
  return *paths;
}

TEST(PathFile, HasTheChainsOfATrace) {
  const std::vector<StepPath> paths = Paths();
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].clock, 4u);
  EXPECT_EQ(paths[0].end_ns - paths[0].begin_ns, 100'000'000);
  ASSERT_EQ(paths[0].parts.size(), 3u);
  EXPECT_EQ(paths[0].parts[1].what, PathWork::kPush);
  EXPECT_EQ(paths[0].parts[1].block, "h.1");
}

TEST(PathFile, SaysWhatATraceLacks) {
  const auto error = [](const char* text) {
    return std::string(PathsIn(nlohmann::json::parse(text), "t").status().message());
  };
  EXPECT_THAT(error("{}"), HasSubstr("no critical path"));
  EXPECT_THAT(error(R"({"critical_path":[{"step":1}]})"), HasSubstr("not a trace"));
  EXPECT_THAT(error(R"({"critical_path":[{"step":1,"begin_us":0,"parts":[
          {"what":"magic","who":"x","block":"","begin_us":0,"us":1}]}]})"),
              HasSubstr("magic"));
  EXPECT_THAT(ReadTraceJson("/nowhere/trace.json").status().message(), HasSubstr("does not exist"));
}

TEST(ExplainText, SaysWhatTheTimeWentTo) {
  const std::string text = BlameReport(Paths());
  EXPECT_THAT(text, HasSubstr("critical path of 1 steps, 100.0 ms each; unexplained: 0.0%"));
  EXPECT_THAT(text, HasSubstr("| worker-1 backward "));
  EXPECT_THAT(text, HasSubstr("| link worker-1 to server-0 (push) "));
  EXPECT_THAT(text, HasSubstr("| 1 smaller part ")) << "less than 1%";
  EXPECT_THAT(text, HasSubstr("worker-1 in 1 of 1 (60.0% of all time)"));
  EXPECT_THAT(text, HasSubstr("worker-1 backward 60%"));
  EXPECT_THAT(ChainText(Paths()[0]), HasSubstr("critical path of step 5, 100.00 ms"));
}

TEST(ExplainText, HasTheSameForPrograms) {
  const nlohmann::ordered_json json = BlameJson(Paths());
  EXPECT_EQ(json["steps"], 1);
  EXPECT_EQ(json["blame"][0]["who"], "worker-1");
  EXPECT_DOUBLE_EQ(json["blame"][0]["part"], 0.6);
  double sum = 0;
  for (const auto& part : json["chains"][0]["parts"]) sum += part["seconds"].get<double>();
  EXPECT_NEAR(sum, json["step_seconds"].get<double>(), 1e-9);
}

TEST(ExplainText, HasTheErrorOfTheBaseAboveWhatIf) {
  WhatIfReport report{.measured_seconds = 0.1,
                      .simulated_seconds = 0.104,
                      .link_bytes_per_second = 12e6,
                      .notes = {"n"},
                      .predictions = {{"2 more servers", {"cluster.servers=4"}, {}, 0.08, 1.3}}};
  const std::string text = WhatIfText(report);
  EXPECT_THAT(text, HasSubstr("links of 12.0 MB/s"));
  EXPECT_THAT(text, HasSubstr("104.0 ms simulated, 100.0 ms measured: +4.0%"));
  EXPECT_THAT(text, HasSubstr("1.30x"));
  EXPECT_THAT(text, HasSubstr("note: n\n"));
  report.in_memory = true;
  EXPECT_THAT(WhatIfText(report), HasSubstr("with an exchange through memory at 12.0 MB/s"));
}

}  // namespace
}  // namespace tug
