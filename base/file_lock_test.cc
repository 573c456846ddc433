#include "base/file_lock.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/test_folder.h"

namespace tug {
namespace {

TEST(FileLock, HasOneHolder) {
  const TestFolder folder;
  const std::string path = folder.path() + "/lock";
  absl::StatusOr<FileDescriptor> held = TryFileLock(path);
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_TRUE(held->valid());
  const absl::StatusOr<FileDescriptor> refused = TryFileLock(path);
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_FALSE(refused->valid());
  std::thread waits([&] { EXPECT_TRUE(AwaitFileLock(path)->valid()); });
  *held = FileDescriptor();
  waits.join();
  EXPECT_TRUE(TryFileLock(path)->valid());
}

TEST(FileLock, NamesAFileThatCannotBeMade) {
  EXPECT_NE(std::string(TryFileLock("/no/such/folder/lock").status().message())
                .find("/no/such/folder/lock"),
            std::string::npos);
}

}  // namespace
}  // namespace tug
