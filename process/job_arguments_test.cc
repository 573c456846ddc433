// SPDX-License-Identifier: Apache-2.0
#include "process/job_arguments.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JobArguments, NameWhatAResumeNeeds) {
  const std::string file = testing::TempDir() + "/job_arguments.textproto";
  std::ofstream(file) << "name: 'a'\n";
  JobArguments job{.job_file = file, .overrides = {"seed=2", "train.steps=5"}};
  job.run_dir = "runs/a";
  job.init_from = "gpt2";
  job.trace = true;
  EXPECT_THAT(job.WordsToResume(), ElementsAre(file, "--set", "seed=2", "--set", "train.steps=5"));
  job.job_file = "/dev/null";  // like a pipe: not a regular file
  job.overrides.clear();
  EXPECT_THAT(job.WordsToResume(), IsEmpty());
}

}  // namespace
}  // namespace tug
