// SPDX-License-Identifier: Apache-2.0
#include "launch/restarted_run.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/observe/run_folder.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

class RestartedRun : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(run_); }

  const std::string run_ = absl::StrCat(::testing::TempDir(), "/restarted");
};

TEST_F(RestartedRun, ChangesNothingAtAFirstStart) {
  fs::create_directories(run_ + "/logs");
  JobArguments job;
  job.run_dir = run_;
  ASSERT_TRUE(ResumeAfterRestart(0, job).ok());
  EXPECT_EQ(job.run_dir, run_);
  EXPECT_EQ(job.resume, "");
  EXPECT_TRUE(fs::exists(run_ + "/logs"));
}

TEST_F(RestartedRun, MovesARunWithoutACheckpointAside) {
  for (const char* end : {"", "/"}) {
    fs::create_directories(run_ + "/logs");
    JobArguments job;
    job.run_dir = run_ + end;
    const uint32_t restarts = 1 + (*end != 0);
    ASSERT_TRUE(ResumeAfterRestart(restarts, job).ok());
    EXPECT_EQ(job.resume, "");
    EXPECT_FALSE(fs::exists(run_));
    const std::string aside = absl::StrCat(run_, ".before-restart-", restarts);
    EXPECT_TRUE(fs::exists(aside + "/logs"));
    fs::remove_all(aside);
  }
}

TEST_F(RestartedRun, MovesTheFolderThatTheKernelFinds) {
  fs::create_directories(run_ + "/disk/sub");
  fs::create_directory_symlink("disk/sub", run_ + "/link");
  fs::create_directories(run_ + "/job/logs");
  fs::create_directories(run_ + "/disk/job/logs");
  JobArguments job;
  job.run_dir = run_ + "/link/../job";
  ASSERT_TRUE(ResumeAfterRestart(1, job).ok());
  EXPECT_TRUE(fs::exists(run_ + "/disk/job.before-restart-1/logs"));
  EXPECT_FALSE(fs::exists(run_ + "/disk/job"));
  EXPECT_TRUE(fs::exists(run_ + "/job/logs"));
}

TEST_F(RestartedRun, LeavesARunAloneThatHasAnOwner) {
  fs::create_directories(run_ + "/logs");
  const absl::StatusOr<OwnedRunFolder> owned = OwnRunFolder(run_);
  ASSERT_TRUE(owned.ok()) << owned.status();
  JobArguments job;
  job.run_dir = run_;
  EXPECT_TRUE(absl::IsFailedPrecondition(ResumeAfterRestart(1, job)));
  EXPECT_TRUE(fs::exists(run_ + "/logs"));
}

TEST_F(RestartedRun, LeavesAnEmptyFolderAlone) {
  fs::create_directories(run_);
  JobArguments job;
  job.run_dir = run_;
  ASSERT_TRUE(ResumeAfterRestart(1, job).ok());
  EXPECT_TRUE(fs::exists(run_));
  EXPECT_EQ(job.run_dir, run_);
}

// A job starts again from where it first started.
TEST_F(RestartedRun, KeepsWhatTheUserSaysForAJobWithoutACheckpoint) {
  fs::create_directories(run_ + "/logs");
  JobArguments job;
  job.run_dir = run_;
  job.resume = "/elsewhere";
  ASSERT_TRUE(ResumeAfterRestart(3, job).ok());
  EXPECT_EQ(job.resume, "/elsewhere");
  EXPECT_EQ(job.run_dir, run_);
  EXPECT_FALSE(fs::exists(run_));
  fs::remove_all(run_ + ".before-restart-3");
}

}  // namespace
}  // namespace tug
