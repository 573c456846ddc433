// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_lock.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/files/test_folder.h"

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

TEST(FileLock, AFolderHasOneHolder) {
  const TestFolder folder;
  absl::StatusOr<FileDescriptor> held = TryFolderLock(folder.path());
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_TRUE(held->valid());
  const absl::StatusOr<FileDescriptor> refused = TryFolderLock(folder.path());
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_FALSE(refused->valid());
  *held = FileDescriptor();
  EXPECT_TRUE(TryFolderLock(folder.path())->valid());
  EXPECT_TRUE(absl::IsNotFound(TryFolderLock(folder.path() + "/missing").status()));
}

TEST(FileLock, SaysThatAFileSystemHasNoLocks) {
  for (const int error_number : {ENOSYS, EOPNOTSUPP, ENOLCK}) {
    const absl::Status status = LockError(error_number, "/lustre/run/lock");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    const std::string message(status.message());
    EXPECT_NE(message.find("cannot lock /lustre/run/lock: its file system does not support locks"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("-o flock"), std::string::npos) << message;
  }
  EXPECT_EQ(LockError(EIO, "/run/lock").code(), absl::StatusCode::kInternal);
}

TEST(FileLock, NamesAFileThatCannotBeMade) {
  EXPECT_NE(std::string(TryFileLock("/no/such/folder/lock").status().message())
                .find("/no/such/folder/lock"),
            std::string::npos);
}

}  // namespace
}  // namespace tug
