#include "experiment/compression_report.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_replace.h"
#include "experiment/compression_charts.h"
#include "experiment/well_formed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Sample {
  const char* codec;
  double push, pull;  // parts of FP32's bytes
  double loss;        // what it ends above FP32
  double extra_ms;    // of computing
};
constexpr Sample kSamples[] = {{"fp32", 1, 1, 0, 0},
                               {"bf16/bf16", 0.5, 0.5, 0.002, 0.2},
                               {"int8/int8", 0.258, 0.254, 0.004, 0.4},
                               {"one_bit/int8", 0.034, 0.254, 0.04, 0.5},
                               {"top_k:0.01/int8", 0.017, 0.254, 0.02, 1.1},
                               {"top_k:0.01-ef/int8", 0.017, 0.254, 0.31, 1.0}};

CompressionResults Example() {
  CompressionResults results{.command = "tug --set a='<&>'",
                             .settings = {{"jo<b", "4 workers & 2 servers"}},
                             .loss_margin = 0.03,
                             .link_names = {"none", "1gbit", "100mbit"}};
  for (const Sample& sample : kSamples) {
    const CodecCase codec = ParseCodecCase(sample.codec).value_or(CodecCase{});
    results.codecs.push_back(codec);
    const double compute = 0.02 + sample.extra_ms * 1e-3;
    double per_byte = 0.3e-9;
    for (const std::string& link : results.link_names) {
      LinkRun run{.codec = codec, .link = link, .warm_up = 2};
      for (uint64_t step = 1; step <= 12; ++step) {
        StepPoint point{.step = step};
        point.pushed_bytes = static_cast<uint64_t>(1.7e6 * sample.push);
        point.pulled_bytes = static_cast<uint64_t>(1.7e6 * sample.pull);
        point.wait_seconds =
            per_byte * static_cast<double>(point.pushed_bytes + point.pulled_bytes);
        point.step_seconds = compute + point.wait_seconds;
        run.figures.steps.push_back(point);
      }
      run.figures.workers.resize(4);
      run.figures.encode_seconds = codec.is_fp32() ? 0 : 0.02;
      run.figures.worker_socket_bytes = link == "none" ? 0 : uint64_t(2e7 * sample.push);
      run.figures.server_socket_bytes = link == "none" ? 0 : uint64_t(2e7 * sample.pull);
      per_byte *= link == "none" ? 10 : 9;
      results.links.push_back(run);
    }
    LearningRun run{.codec = codec, .learning_rate = 2e-3};
    for (uint64_t step = 1; step <= 320; ++step) {
      const auto x = static_cast<double>(step);
      run.figures.steps.push_back({.step = step,
                                   .seconds = x * compute,
                                   .loss = 1.2 + 2 * std::exp(-x / 60) + sample.loss * x / 320,
                                   .pushed_bytes = static_cast<uint64_t>(1.7e6 * sample.push),
                                   .pulled_bytes = static_cast<uint64_t>(1.7e6 * sample.pull)});
      if (step % 80 != 0) continue;
      const double loss = run.figures.steps.back().loss + 0.05;
      run.figures.evals.push_back({step, x * compute, loss, step == 320});
    }
    results.learning.push_back(run);
  }
  return results;
}

TEST(CompressionReport, IsOneWellFormedPageThatFetchesNothing) {
  const std::string page = CompressionReportHtml(Example());
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(HasSubstr("Does it pay?"), HasSubstr("Step time"),
                          HasSubstr("Bytes of a step"), HasSubstr("Loss"),
                          HasSubstr("seconds, link 100mbit"), HasSubstr("waits for weights"),
                          HasSubstr("jo&lt;b"), HasSubstr("not as well, +0.3100")));
  const std::string plain =
      absl::StrReplaceAll(page, {{"xmlns=\"http://www.w3.org/2000/svg\"", ""}});
  EXPECT_THAT(plain, AllOf(Not(HasSubstr("http")), Not(HasSubstr("<script")), Not(HasSubstr("nan")),
                           Not(HasSubstr("inf"))));
}

TEST(CompressionReport, IsAPageBeforeAnythingIsMeasuredAndWithAPartOfIt) {
  ExpectWellFormed(CompressionReportHtml({}));
  CompressionResults results = Example();
  results.learning.clear();
  EXPECT_EQ(LearningLossesSvg(results), "");
  const std::string links = CompressionReportHtml(results);
  ExpectWellFormed(links);
  EXPECT_THAT(links, AllOf(HasSubstr("On links"), Not(HasSubstr("All trainings"))));
  results = Example();
  results.links.clear();
  EXPECT_EQ(StepTimesSvg(results), "");
  EXPECT_EQ(StepBytesSvg(results), "");
  const std::string learning = CompressionReportHtml(results);
  ExpectWellFormed(learning);
  EXPECT_THAT(learning, AllOf(HasSubstr("All trainings"), Not(HasSubstr("seconds, link")),
                              Not(HasSubstr("On links"))));
}

TEST(CompressionReport, ATrainingThatDivergedIsDrawnToWhereItDid) {
  CompressionResults results = Example();
  RunFigures& figures = results.learning[5].figures;
  for (size_t i = 50; i < figures.steps.size(); ++i) {
    figures.steps[i].loss = std::numeric_limits<double>::quiet_NaN();
  }
  figures.evals.back().loss = std::numeric_limits<double>::quiet_NaN();
  const std::string page = CompressionReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("nan")), HasSubstr("not finite")));
}

}  // namespace
}  // namespace tug
