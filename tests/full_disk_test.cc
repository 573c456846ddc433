// SPDX-License-Identifier: Apache-2.0
// A full disk: the job ends with one line that names file, remedy and checkpoint, and that
// checkpoint stays usable. The disk is a tmpfs that only this process sees.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

// Enters its own mount namespace; as root, or as any user if the kernel allows it. False: not
// possible.
bool OwnMounts() {
  if (unshare(CLONE_NEWNS) != 0) {
    const uid_t uid = getuid();
    const gid_t gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

class FullDiskTest : public TugTest {
 protected:
  static void SetUpTestSuite() { own_mounts_ = OwnMounts(); }

  void SetUp() override {
    if (!own_mounts_) GTEST_SKIP() << "cannot mount here: " << std::strerror(errno);
    fs::create_directories(Path("disk"));
  }
  void TearDown() override {
    TugTest::TearDown();
    umount2(Path("disk").c_str(), MNT_DETACH);
  }

  void MakeDisk(uint64_t kilobytes) {
    const std::string options = absl::StrCat("size=", kilobytes, "k");
    ASSERT_EQ(mount("none", Path("disk").c_str(), "tmpfs", 0, options.c_str()), 0)
        << std::strerror(errno);
  }
  // Fills the disk.
  void FillDisk() {
    const int fd = open(Path("disk/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(fd, 0);
    const std::string zeros(1 << 16, '\0');
    for (size_t size = zeros.size(); size > 0;) {
      if (write(fd, zeros.data(), size) <= 0) size /= 2;
    }
    close(fd);
  }

  static bool own_mounts_;
};
bool FullDiskTest::own_mounts_ = false;

TEST_F(FullDiskTest, IsFoundBeforeAnythingIsOffloadedToIt) {
  ASSERT_NO_FATAL_FAILURE(MakeDisk(100));
  Process& train = StartTraining("run", {absl::StrCat("placement.offload_dir=", Path("disk"))});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ExpectErrorLine(train,
                  {"placement.offload_dir", Path("disk"), "No space left", "free some space"});
  ExpectNobodyLeft();
}

TEST_F(FullDiskTest, IsFoundBeforeTheJobStarts) {
  ASSERT_NO_FATAL_FAILURE(MakeDisk(100));
  Process& train = StartTraining("disk/run", {});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ExpectErrorLine(train, {Path("disk/run"), "No space left", "free some space"});
  EXPECT_FALSE(fs::exists(Path("disk/run")));
  ExpectNobodyLeft();
}

TEST_F(FullDiskTest, LeavesTheCheckpointBeforeUsable) {
  ASSERT_NO_FATAL_FAILURE(MakeDisk(32 << 10));
  Process& train = StartTraining("disk/run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "disk/run"));
  ASSERT_NO_FATAL_FAILURE(FillDisk());
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectErrorLine(train, {Path("disk/run"), "No space left", "free some space",
                          absl::StrCat("--resume ", Path("disk/run"))});
  ExpectNobodyLeft();

  const uint64_t from = NewestCheckpoint("disk/run");
  ASSERT_GT(from, 0u);
  EXPECT_EQ(Run({"sample", "--from", Path("disk/run"), "--tokens", "5"}).exit_code(), 0);
  fs::remove(Path("disk/filler"));
  const Texts settings = {absl::StrCat("train.steps=", from + 10), "checkpoint.interval=0"};
  const Process& resumed = Run(Texts{"train", job(), "--resume", Path("disk/run")} + Set(settings));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err();
  Train("undisturbed", settings);
  ASSERT_FALSE(HasFailure());
  ExpectSameState(Path("undisturbed"), Path("disk/run"));
}

class UnwrittenCheckpointTest : public TugTest {
 protected:
  // Starts a job that cannot write `checkpoints` consecutive checkpoints: files block the names of
  // their folders. Returns the step of the first.
  uint64_t StartUnwritable(Process*& train, uint64_t checkpoints) {
    train = &StartTraining("run", Endless());
    WaitForCheckpoint(*train, "run");
    const uint64_t first = NewestCheckpoint("run") + 20 * kInterval;
    for (uint64_t i = 0; i < checkpoints; ++i) {
      Write(absl::StrFormat("run/checkpoints/step-%08d.tmp", first + i * kInterval), "");
    }
    return first;
  }

  static constexpr uint64_t kInterval = 100;  // checkpoint.interval of Endless()
};

TEST_F(UnwrittenCheckpointTest, SeveralInARowEndTheJob) {
  Process* train = nullptr;
  const uint64_t first = StartUnwritable(train, 3);
  ASSERT_FALSE(HasFailure());
  ASSERT_TRUE(train->WaitForEnd(After(kPatience))) << train->err();
  EXPECT_THAT(train->err(), testing::HasSubstr("next attempt at step "));
  ExpectErrorLine(*train, {absl::StrCat("checkpoint of step ", first + 2 * kInterval,
                                        " was not written: server"),
                           "3 checkpoints in a row", "--resume"});
  EXPECT_EQ(NewestCheckpoint("run"), first - kInterval);
}

TEST_F(UnwrittenCheckpointTest, AJobGoesOnWithoutOne) {
  Process* train = nullptr;
  const uint64_t unwritten = StartUnwritable(train, 1);
  ASSERT_FALSE(HasFailure());
  ASSERT_TRUE(
      train->WaitUntil([&] { return NewestCheckpoint("run") > unwritten; }, After(kPatience)))
      << train->err();
  EXPECT_THAT(train->err(), testing::HasSubstr(absl::StrCat("checkpoint of step ", unwritten,
                                                            " was not written: server")));
  train->Signal(SIGINT);
  ASSERT_TRUE(train->WaitForEnd(After(kPatience))) << train->err();
  ExpectOrderlyEnd(*train, "run");
}

}  // namespace
}  // namespace tug
