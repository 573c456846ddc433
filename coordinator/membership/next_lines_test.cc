// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/next_lines.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

using ::testing::ElementsAreArray;

// A job that trains a GPT on a text.
JobConfig TextJob() {
  JobConfig job;
  job.mutable_model()->set_family(ModelConfig::DECODER);
  job.mutable_data()->set_validation_fraction(0.1);
  return job;
}

// A run of it that is complete.
RunOutcome CompleteRun() { return {.run = "runs/a", .checkpoint = 24, .complete = true}; }

struct Case {
  const char* name;
  std::function<void(JobConfig&, RunOutcome&)> change;
  std::vector<std::string> lines;
};

TEST(NextLines, NameOnlyCommandsThatWorkForTheRun) {
  const std::string explain =
      "next: tug explain runs/a shows the critical path of each step and suggests settings";
  const Case cases[] = {
      {"text", [](auto&, auto&) {}, {"next: tug sample --from runs/a"}},
      {"a path with a blank",
       [](auto&, auto& run) { run.run = "my runs/a"; },
       {"next: tug sample --from 'my runs/a'"}},
      {"random tokens",
       [](auto& job, auto&) { job.mutable_data()->mutable_random()->set_samples(8); },
       {"next: tug eval --from runs/a"}},
      {"classifier",
       [](auto& job, auto&) { job.mutable_model()->set_family(ModelConfig::ENCODER); },
       {"next: tug eval --from runs/a"}},
      {"classifier without a validation split",
       [](auto& job, auto&) {
         job.mutable_model()->set_family(ModelConfig::ENCODER);
         job.mutable_data()->set_validation_fraction(0);
       },
       {}},
      {"text without a validation split",
       [](auto& job, auto&) { job.mutable_data()->set_validation_fraction(0); },
       {"next: tug sample --from runs/a"}},
      {"external model", [](auto& job, auto&) { job.mutable_model()->set_external(true); }, {}},
      {"replay", [](auto& job, auto&) { job.set_compute(JobConfig::REPLAY); }, {}},
      {"traced",
       [](auto&, auto& run) { run.explainable = true; },
       {"next: tug sample --from runs/a", explain}},
      {"traced replay",
       [](auto& job, auto& run) {
         job.set_compute(JobConfig::REPLAY);
         run.explainable = true;
       },
       {explain}},
      {"stopped",
       [](auto&, auto& run) { run.complete = false; },
       {"continue with: tug train --resume runs/a"}},
      {"stopped and traced",
       [](auto&, auto& run) {
         run.complete = false;
         run.explainable = true;
       },
       {"continue with: tug train --resume runs/a", explain}},
      {"stopped early",
       [](auto&, auto& run) {
         run.complete = false;
         run.stopped_early = true;
       },
       {"continue with: tug train --resume runs/a", "next: tug sample --from runs/a"}},
      {"stopped before the first step",
       [](auto&, auto& run) {
         run.complete = false;
         run.checkpoint = 0;
       },
       {"no step was run and no checkpoint written: start the job again"}},
  };
  for (const Case& one : cases) {
    JobConfig job = TextJob();
    RunOutcome run = CompleteRun();
    one.change(job, run);
    EXPECT_THAT(NextLines(job, run), ElementsAreArray(one.lines)) << one.name;
  }
}

TEST(ResumeCommand, IsThatOfTheJobsLauncherOrKind) {
  JobConfig job = TextJob();
  EXPECT_EQ(ResumeCommand(job, "it's", ""), "tug train --resume 'it'\\''s'");
  EXPECT_EQ(ResumeCommand(job, "runs/a", "tug launch job --hosts hosts.txt"),
            "tug launch job --hosts hosts.txt --resume runs/a");
  job.mutable_model()->set_external(true);
  EXPECT_EQ(ResumeCommand(job, "runs/a", ""), "tug coordinator --resume runs/a");
}

}  // namespace
}  // namespace tug
