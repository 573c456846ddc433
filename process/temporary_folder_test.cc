// SPDX-License-Identifier: Apache-2.0
#include "process/temporary_folder.h"

#include <filesystem>

#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, IsMadeAgainAfterItWasDeleted) {
  TemporaryFolder folder;
  ASSERT_TRUE(folder.Make("test").ok());
  EXPECT_TRUE(folder.MakeAgain().ok()) << "it is still there";
  fs::remove_all(folder.path());
  EXPECT_TRUE(folder.MakeAgain().ok());
  EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
}

TEST(TemporaryFolder, IsNotWhatSomebodyElseHasMadeInItsPlace) {
  TemporaryFolder folder;
  ASSERT_TRUE(folder.Make("test").ok());
  fs::remove_all(folder.path());
  fs::create_directory_symlink("/", folder.path());
  EXPECT_EQ(folder.MakeAgain().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace tug
