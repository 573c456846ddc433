// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/offload_report.h"

#include <fstream>
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/experiment/charts/well_formed.h"
#include "lab/experiment/sections/offload_text.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = DeviceSpan::Kind;

// Steps of 10 ms forward, 20 ms backward, then `bp` and `fp` of idle time.
OffloadRun Run(OffloadKind kind, double bp, double fp) {
  OffloadRun run{.kind = kind, .device = "<a device>", .state_bytes = 12e6, .loss = 3.25};
  double at = 0;
  for (uint64_t step = 1; step <= 6; ++step) {
    run.timeline.spans.push_back({Kind::kForward, step, at, at + 0.010});
    run.timeline.spans.push_back({Kind::kBackward, step, at + 0.010, at + 0.030});
    at += 0.030;
    run.timeline.updated_at[step] = at + bp;
    at += bp + fp;
  }
  run.steps = DeviceSteps(run.timeline);
  return run;
}

OffloadResults Sample() {
  OffloadResults results{.command = "tug experiment offload jo<b",
                         .settings = {{"model", "small"}},
                         .tokens_per_step = 512};
  results.runs.push_back(Run(OffloadKind::kPlain, 0, 0));
  results.runs.push_back(Run(OffloadKind::kOffload, 0.020, 0.010));
  results.runs.back().exposed = 0.5;
  results.runs.push_back(Run(OffloadKind::kOverlapped, 0.003, 0));
  results.runs.back().exposed = 0.1;
  results.runs.back().state_bytes = 4e6;
  return results;
}

TEST(OffloadReport, IsOneWellFormedPageThatFetchesNothing) {
  OffloadResults results = Sample();
  results.runs.emplace_back().error = "said <no>";
  const std::string page = OffloadReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(HasSubstr("Utilisation over time"), HasSubstr("jo&lt;b"),
                          HasSubstr("&lt;a device&gt;"), HasSubstr("said &lt;no&gt;"),
                          HasSubstr("Failed cases"), HasSubstr("step 2, BP bubble, 20.00 ms"),
                          HasSubstr("step 2, FP bubble, 10.00 ms"), HasSubstr("mean 50.0%")));
  const std::string plain =
      absl::StrReplaceAll(page, {{"xmlns=\"http://www.w3.org/2000/svg\"", ""}});
  EXPECT_THAT(plain, AllOf(Not(HasSubstr("http")), Not(HasSubstr("<script")), Not(HasSubstr("nan")),
                           Not(HasSubstr("inf"))));
  ExpectWellFormed(OffloadReportHtml({}));
}

TEST(OffloadReport, TableHasALineForEachCase) {
  const auto table = OffloadTable(Sample());
  ASSERT_EQ(table.size(), 4u);
  EXPECT_THAT(table[1], ElementsAre("plain", "30.0 [30.0, 30.0]", "1.00", "17067", "100.0%", "-",
                                    "-", "0.0", "-", "12.00", "3.250000"));
  EXPECT_THAT(table[2], ElementsAre("offload", "60.0 [60.0, 60.0]", "2.00", "8533", "50.0%", "20.0",
                                    "10.0", "0.0", "50.0%", "12.00", "3.250000"));
  EXPECT_THAT(
      OffloadMarkdown(Sample()),
      AllOf(HasSubstr("BP bubble 20.0 ms, FP bubble 10.0 ms"),
            HasSubstr("3.0 ms instead of 30.0 ms"),
            HasSubstr(
                "**Answer:** a step takes 2.00 times (offload) and 1.10 times (overlapped) that of "
                "plain, with 4.00 MB of weights and Adam's state on the device instead "
                "of 12.00 MB.")));
}

TEST(OffloadResults, ComparesWhatWasComputedOnOneDeviceOnly) {
  OffloadResults results;
  OffloadRun job{.kind = OffloadKind::kOffload};
  job.timeline.on_gpu = true;
  EXPECT_TRUE(CheckSameDevice(results, job).ok());
  results.runs.push_back({.kind = OffloadKind::kPlain, .error = "failed"});
  EXPECT_TRUE(CheckSameDevice(results, job).ok()) << "there is nothing to compare it with";
  results.runs.push_back(job);
  const OffloadRun on_cpu{.kind = OffloadKind::kOverlapped};
  EXPECT_THAT(std::string(CheckSameDevice(results, on_cpu).message()),
              HasSubstr("it ran on the CPU, but offload ran on a GPU"));
  results.runs[0] = {.kind = OffloadKind::kPlain};
  EXPECT_TRUE(CheckSameDevice(results, on_cpu).ok());
  EXPECT_THAT(std::string(CheckSameDevice(results, job).message()),
              HasSubstr("it ran on a GPU, but plain ran on the CPU"));
}

TEST(OffloadReport, JsonHasStepsAndPasses) {
  const nlohmann::ordered_json json = OffloadJson(Sample());
  ASSERT_EQ(json["runs"].size(), 3u);
  EXPECT_EQ(json["runs"][1]["steps"].size(), 5u);
  EXPECT_EQ(json["runs"][1]["passes"].size(), 12u);
  EXPECT_NEAR(json["runs"][1]["bp_bubble_seconds"].get<double>(), 0.020, 1e-9);
}

TEST(OffloadReport, ReadsWhatTheBenchmarkOfATrainingAloneWrote) {
  const std::string path = ::testing::TempDir() + "/plain.json";
  std::ofstream(path) << R"({"device":"the CPU","on_gpu":false,"state_bytes":1200,"loss":2.5,
    "spans":[{"kind":"optimizer","step":1,"begin_seconds":0,"end_seconds":0.5},
             {"kind":"forward","step":2,"begin_seconds":0.5,"end_seconds":1},
             {"kind":"optimizer","step":2,"begin_seconds":1.5,"end_seconds":2}]})";
  const auto run = ReadPlainRun(path);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->kind, OffloadKind::kPlain);
  EXPECT_EQ(run->StepSeconds(), 1.5);
  EXPECT_EQ(run->OtherSeconds(), 0.5);
  EXPECT_EQ(run->FpBubbleSeconds(), 0);
  std::ofstream(path) << "[]";
  EXPECT_EQ(ReadPlainRun(path).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tug
