// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/run_folder.h"
#include "base/files/replace_file.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFolderTest : public ::testing::Test {
 protected:
  RunFolderTest() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    before_ = fs::current_path();
    fs::current_path(root_);
  }
  ~RunFolderTest() override { fs::current_path(before_); }

  const fs::path root_ = fs::path(::testing::TempDir()) / "run_folder_test";
  fs::path before_;
};

TEST_F(RunFolderTest, TakesTheFirstFreeNumber) {
  EXPECT_EQ(CreateRunFolder("", "bible").value(), (root_ / "runs/bible-1").string());
  EXPECT_EQ(CreateRunFolder("", "bible").value(), (root_ / "runs/bible-2").string());
  fs::remove_all(root_ / "runs/bible-1");
  EXPECT_EQ(CreateRunFolder("", "bible").value(), (root_ / "runs/bible-1").string());
}

TEST_F(RunFolderTest, TakesANamedFolderOnlyWhenItIsEmpty) {
  EXPECT_EQ(CreateRunFolder("a/b", "job").value(), (root_ / "a/b").string());
  EXPECT_TRUE(CreateRunFolder("a/b", "job").ok());
  std::ofstream("a/b/file") << "x";
  const auto again = CreateRunFolder("a/b", "job");
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("--resume a/b"));
}

TEST_F(RunFolderTest, IsTheFolderThatTheKernelFinds) {
  fs::create_directories("disk/sub");
  fs::create_directory_symlink("disk/sub", "link");
  fs::create_directories("run");
  const fs::path found = fs::canonical(root_ / "disk") / "run";
  EXPECT_EQ(CreateRunFolder("link/../run", "job").value(), found.string());
  std::ofstream(found / "file") << "x";
  EXPECT_EQ(CreateRunFolder("link/../run", "job").status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(CreateRunFolder("run", "job").ok()) << "what is text alone is another folder";
}

TEST_F(RunFolderTest, HasANameAlsoWhereTheShellHasCompletedIt) {
  EXPECT_EQ(CreateRunFolder("run/", "job").value(), (root_ / "run").string());
  EXPECT_EQ(CreateRunFolder("a/b//", "job").value(), (root_ / "a/b").string());
}

TEST_F(RunFolderTest, IsRefusedWhereNoMessageCanNameIt) {
  for (const auto& refused : {CreateRunFolder("caf\xE9", "job"), CreateRunFolder("", "caf\xE9")}) {
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("caf\\xe9 is not UTF-8"));
  }
  EXPECT_TRUE(fs::is_empty(root_));
  EXPECT_TRUE(CreateRunFolder("caf\xC3\xA9 1", "job").ok());
}

TEST_F(RunFolderTest, KnowsWhetherItHasMadeTheFolder) {
  EXPECT_TRUE(CreateAndOwnRunFolder("", "job")->made);
  EXPECT_TRUE(CreateAndOwnRunFolder("new", "job")->made);
  EXPECT_FALSE(CreateAndOwnRunFolder("new", "job")->made);
  fs::create_directory("there");
  fs::create_directory_symlink("there", "link");
  EXPECT_FALSE(CreateAndOwnRunFolder("link", "job")->made);
}

// A job that died while reading its text loses nothing when it begins again.
TEST_F(RunFolderTest, TakesAFolderThatHoldsTokensOnly) {
  fs::create_directories("a/data");
  std::ofstream("a/data/tokens.bin") << "x";
  EXPECT_TRUE(CreateRunFolder("a", "job").ok());
  std::ofstream("a/data/other") << "x";
  EXPECT_FALSE(CreateRunFolder("a", "job").ok());
}

TEST_F(RunFolderTest, KeepsTheCoordinatorsAddress) {
  EXPECT_EQ(ReadCoordinatorAddress(root_).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteCoordinatorAddress(root_, {"127.0.0.1:70", ~uint64_t{0}}).ok());
  EXPECT_EQ(ReadCoordinatorAddress(root_)->address, "127.0.0.1:70");
  EXPECT_EQ(ReadCoordinatorAddress(root_)->job, ~uint64_t{0});
  RemoveCoordinatorAddress(root_);
  ASSERT_TRUE(WriteFile(root_ / kConfigFile, "").ok());
  EXPECT_THAT(std::string(ReadCoordinatorAddress(root_).status().message()),
              HasSubstr("the job has ended; it has no checkpoint: start the job again"));
}

TEST_F(RunFolderTest, KeepsTheCommandThatContinuesTheRun) {
  EXPECT_EQ(ReadContinueWith(root_), "");
  ASSERT_TRUE(WriteContinueWith(root_, "tug launch job --hosts 'my hosts'").ok());
  EXPECT_EQ(ReadContinueWith(root_), "tug launch job --hosts 'my hosts'");
  ASSERT_TRUE(WriteContinueWith(root_, "").ok());
  EXPECT_EQ(ReadContinueWith(root_), "");
}

TEST_F(RunFolderTest, HasOneOwnerAtATime) {
  absl::StatusOr<OwnedRunFolder> owned = CreateAndOwnRunFolder("a", "job");
  ASSERT_TRUE(owned.ok()) << owned.status();
  const std::string path = owned->path;
  for (const absl::Status& refused :
       {OwnRunFolder(path).status(), CreateAndOwnRunFolder("a", "job").status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("tug status " + path));
  }
  owned->lock = FileDescriptor();
  EXPECT_TRUE(OwnRunFolder(path).ok());
}

TEST_F(RunFolderTest, NamesTheFileItCannotWrite) {
  EXPECT_THAT(std::string(WriteFile("/no/such/folder/x", "y").message()),
              HasSubstr("/no/such/folder/x"));
}

}  // namespace
}  // namespace tug
