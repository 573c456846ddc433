// SPDX-License-Identifier: Apache-2.0
// A process killed while it writes a checkpoint leaves a complete one: this one or the previous.
// (The outcome of a power cut depends on the order of syncs, which no test here can check.)

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/files/test_folder.h"
#include "base/time_source.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_fixture.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

// Writes checkpoints of versions after `version` until it is killed; each twice (the second
// replaces the first).
[[noreturn]] void WriteForever(const std::string& run_dir, uint64_t version) {
  while (true) {
    ++version;
    for (uint32_t salt : {1, 2}) {
      const TestCheckpoint what{.version = version, .salt = salt, .seed = version, .keep = 1};
      if (!WriteTestCheckpoint(run_dir, what).ok()) ::_exit(1);
    }
  }
}

TEST(CheckpointKill, KillAtARandomInstantLeavesACompleteCheckpoint) {
  const uint64_t seed = 20240523;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const TestFolder run;
  const RealTime time;
  const absl::Time begin = time.Now();
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1}).ok());
  // Long enough for some versions, whatever the storage.
  const int64_t longest_us =
      std::clamp<int64_t>(4 * absl::ToInt64Microseconds(time.Now() - begin), 30'000, 900'000);
  uint64_t newest = 1;
  for (int trial = 0; trial < 40; ++trial) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) WriteForever(run.path(), newest);
    ::usleep(static_cast<useconds_t>(random() % longest_us));  // the random instant
    ::kill(child, SIGKILL);
    int wait_status = 0;
    ASSERT_EQ(::waitpid(child, &wait_status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(wait_status)) << "the child failed to write";
    const auto manifest = VerifyTestCheckpoint(run.path());
    ASSERT_TRUE(manifest.ok()) << manifest.status() << ", trial " << trial;
    ASSERT_GE(manifest->version(), newest);
    newest = manifest->version();
    if (trial % 3 == 0) {
      ASSERT_TRUE(DiscardUnfinished(run.path()).ok());
      ASSERT_TRUE(VerifyTestCheckpoint(run.path()).ok());
    }
  }
  RecordProperty("versions", static_cast<int>(newest));
  EXPECT_GT(newest, 1u);
}

enum class Outcome { kKilled, kFinished, kCannotTrace, kFailed };

// Runs WriteTestCheckpoint in a child and kills it as it enters its n-th system call.
Outcome KillAtSystemCall(const std::string& run_dir, const TestCheckpoint& what, int n) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(3);
    ::raise(SIGSTOP);
    ::_exit(WriteTestCheckpoint(run_dir, what).ok() ? 0 : 1);
  }
  int wait_status = 0;
  ::waitpid(child, &wait_status, 0);
  for (int stops = 0; WIFSTOPPED(wait_status); ++stops) {
    if (stops == 2 * n) {  // each call stops twice, on entry and exit
      ::kill(child, SIGKILL);
      ::waitpid(child, &wait_status, 0);
      return Outcome::kKilled;
    }
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &wait_status, 0);
  }
  const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1;
  return code == 0 ? Outcome::kFinished : code == 3 ? Outcome::kCannotTrace : Outcome::kFailed;
}

// Kills the writer between any two system calls while it writes `what` into a run folder with
// version 5 (timeline 1). Each kill must leave the old or the new checkpoint complete, and the next
// attempt must succeed.
void KillAtEverySystemCall(const TestCheckpoint& what) {
  const TestCheckpoint previous{.version = 5, .salt = 1, .lanes = 2, .keep = 1};
  std::unique_ptr<TestFolder> run;
  int n = 0;
  for (Outcome outcome = Outcome::kKilled; outcome == Outcome::kKilled; ++n) {
    if (run == nullptr) {
      run = std::make_unique<TestFolder>();
      ASSERT_TRUE(WriteTestCheckpoint(run->path(), previous).ok());
    }
    outcome = KillAtSystemCall(run->path(), what, n);
    if (outcome == Outcome::kCannotTrace) GTEST_SKIP() << "cannot trace a process here";
    ASSERT_NE(outcome, Outcome::kFailed) << "system call " << n;
    const auto manifest = VerifyTestCheckpoint(run->path());
    ASSERT_TRUE(manifest.ok()) << manifest.status() << ", system call " << n;
    if (manifest->timeline() == previous.salt) {
      ASSERT_EQ(outcome, Outcome::kKilled);
      continue;
    }
    ASSERT_EQ(manifest->timeline(), what.salt);
    ASSERT_EQ(manifest->version(), what.version);
    ASSERT_TRUE(WriteTestCheckpoint(run->path(), what).ok()) << "system call " << n;
    run = nullptr;
  }
  EXPECT_GT(n, 50) << "the child was not traced call by call";
  std::cout << "killed at " << n - 1 << " system calls\n";
}

TEST(CheckpointKill, KillAtAnySystemCallOfTheNextVersionLeavesACompleteCheckpoint) {
  KillAtEverySystemCall({.version = 6, .salt = 2, .lanes = 2, .keep = 1});
}

TEST(CheckpointKill, KillAtAnySystemCallOfAReplacementLeavesACompleteCheckpoint) {
  KillAtEverySystemCall({.version = 5, .salt = 2, .lanes = 2, .keep = 1});
}

}  // namespace
}  // namespace tug
