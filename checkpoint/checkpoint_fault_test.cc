// SPDX-License-Identifier: Apache-2.0
// Full disks and damaged bytes.

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/file_writer.h"
#include "base/files/test_folder.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// During its lifetime, a write that makes a file larger than `limit_bytes` fails as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t limit_bytes) {
    old_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    rlimit limit = old_limit_;
    limit.rlim_cur = limit_bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_limit_;
  sighandler_t old_handler_;
};

TEST(CheckpointFault, FullDiskAtALaneFileLeavesThePreviousCheckpoint) {
  const TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1, .keep = 1}).ok());
  for (const rlim_t limit_bytes : {0, 100, 4096, 20'000}) {
    absl::Status status;
    {
      const FileSizeLimit limit(limit_bytes);
      status = WriteTestCheckpoint(run.path(), {.version = 2, .lanes = 1, .keep = 1}).status();
    }
    const std::string path = run.path() + "/checkpoints/step-00000002.tmp/lane-000.safetensors";
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(Message(status),
                AllOf(HasSubstr(path), HasSubstr("File too large"), HasSubstr("ulimit -f")));
    EXPECT_FALSE(std::filesystem::exists(path));
    const auto manifest = VerifyTestCheckpoint(run.path());
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(manifest->version(), 1u);
  }
}

TEST(CheckpointFault, FullDiskAtTheManifestLeavesThePreviousCheckpoint) {
  const TestFolder run;
  ASSERT_TRUE(WriteTestCheckpoint(run.path(), {.version = 1, .keep = 1}).ok());
  const auto manifest = WriteTestParts(run.path(), {.version = 2});
  ASSERT_TRUE(manifest.ok());
  absl::Status status;
  {
    const FileSizeLimit limit(50);
    status = CommitCheckpoint(run.path(), *manifest, {.keep = 1}).status();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("step-00000002.tmp/manifest.textproto"));
  EXPECT_EQ(VerifyTestCheckpoint(run.path())->version(), 1u);
  ASSERT_TRUE(CommitCheckpoint(run.path(), *manifest, {.keep = 1}).ok());
  EXPECT_EQ(VerifyTestCheckpoint(run.path())->version(), 2u);
}

TEST(CheckpointFault, FullFileSystemLeavesThePreviousCheckpoint) {
  const TestFolder run;
  if (::mount("tmpfs", run.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "cannot mount a small tmpfs here: " << std::strerror(errno);
  }
  std::vector<absl::Status> statuses;
  uint64_t committed = 0;
  for (uint64_t version = 1; version <= 8; ++version) {
    const absl::Status status =
        WriteTestCheckpoint(run.path(), {.version = version, .keep = 8}).status();
    if (status.ok()) {
      committed = version;
    } else {
      EXPECT_THAT(Message(status), AllOf(HasSubstr(run.path()), HasSubstr("; free some space")));
    }
    statuses.push_back(status);
    const auto manifest = VerifyTestCheckpoint(run.path());
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(manifest->version(), committed);
  }
  EXPECT_GT(committed, 0u);
  EXPECT_TRUE(absl::IsResourceExhausted(statuses.back())) << statuses.back();
  EXPECT_EQ(::umount2(run.path().c_str(), MNT_DETACH), 0);
}

TEST(CheckpointFault, DamageAtAnyPlaceIsAnErrorThatNamesTheFileAndTheOlderCheckpoint) {
  const uint64_t seed = 20240524;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const TestFolder run;
  const auto older = WriteTestCheckpoint(run.path(), {.version = 1});
  const auto newer = WriteTestCheckpoint(run.path(), {.version = 2});
  ASSERT_TRUE(newer.ok());
  const std::vector<std::string> names = {"lane-000.safetensors", "lane-001.safetensors",
                                          "lane-002.safetensors", "manifest.textproto"};
  for (int trial = 0; trial < 200; ++trial) {
    const std::string path = *newer + "/" + names[random() % names.size()];
    const std::string whole = *ReadWholeFile(path, 1 << 30);
    std::string damaged = whole;
    const bool truncate = random() % 2 == 0;
    const size_t at = random() % whole.size();
    if (truncate) {
      damaged.resize(at);
    } else {
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    }
    const auto overwrite = [&path](const std::string& bytes) {
      auto file = FileWriter::Create(path);
      return file.ok() && file->Append(bytes).ok() && file->Finish().ok();
    };
    ASSERT_TRUE(overwrite(damaged));
    const absl::Status status = CheckpointReader::Open(*newer).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr(path), HasSubstr("truncated"), HasSubstr(*older)));
    if (truncate || path.ends_with("manifest.textproto")) {
      EXPECT_EQ(FindCheckpoint(run.path()).status(), status);
    }
    ASSERT_TRUE(overwrite(whole));
  }
  EXPECT_TRUE(VerifyTestCheckpoint(run.path()).ok());
}

TEST(CheckpointFault, DamageToTheOnlyCheckpointSaysSo) {
  const TestFolder run;
  const auto only = WriteTestCheckpoint(run.path(), {.version = 1});
  std::filesystem::resize_file(*only + "/manifest.textproto", 10);
  EXPECT_THAT(Message(FindCheckpoint(run.path()).status()),
              AllOf(HasSubstr(*only + "/manifest.textproto"), HasSubstr("no older")));
}

}  // namespace
}  // namespace tug
