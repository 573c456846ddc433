// SPDX-License-Identifier: Apache-2.0
#include "base/files/file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"
#include "base/files/replace_file.h"
#include "base/files/test_folder.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

std::string PathOf(const std::string& name) { return testing::TempDir() + "/" + name; }

TEST(FileWriter, WritesWhatWasAppendedInAnySizesAndHashesIt) {
  const std::string path = PathOf("writer");
  auto writer = FileWriter::Create(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::string expected;
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{1} << 20, size_t{7}, (size_t{1} << 20) - 3, size_t{3} << 20}) {
    const std::string part(size, static_cast<char>('a' + expected.size() % 26));
    ASSERT_TRUE(writer->Append(part).ok());
    expected += part;
  }
  EXPECT_EQ(writer->size_bytes(), expected.size());
  EXPECT_EQ(writer->xxh3(), XXH3_64bits(expected.data(), expected.size()));
  const std::string patch = "header";
  ASSERT_TRUE(writer->Overwrite(5, std::as_bytes(std::span(patch))).ok());
  expected.replace(5, patch.size(), patch);
  ASSERT_TRUE(writer->Finish().ok());

  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string_view got(reinterpret_cast<const char*>(file->bytes().data()),
                             file->bytes().size());
  EXPECT_TRUE(got == expected);
  auto whole = ReadWholeFile(path, expected.size());
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(*whole == expected);
  EXPECT_EQ(ReadWholeFile(path, expected.size() - 1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(File, ErrorsNameThePathAndARemedy) {
  const std::string missing = PathOf("no/such/file");
  for (const absl::Status& status :
       {MappedFile::Open(missing).status(), FileWriter::Create(missing).status(),
        ReadWholeFile(missing, 1).status(), SyncFolder(missing)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_NE(std::string(status.message()).find(missing + ": "), std::string::npos) << status;
    EXPECT_NE(std::string(status.message()).find("check the path"), std::string::npos) << status;
  }
  EXPECT_EQ(MappedFile::Open(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(File, FullDiskIsResourceExhausted) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  auto writer = FileWriter::Create("/dev/full");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Append("gathered").ok());
  const absl::Status status = writer->Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(status.message()).find("free some space"), std::string::npos) << status;
}

TEST(File, AFolderOfAFileSystemThatCannotSyncFoldersIsLeftAsItIs) {
  const int fd = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const bool syncs = ::fsync(fd) == 0;
  ::close(fd);
  if (syncs) GTEST_SKIP() << "/proc syncs here";
  const absl::Status status = SyncFolder("/proc");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(File, AnAbsolutePathLeadsWhereTheKernelLeads) {
  namespace fs = std::filesystem;
  const TestFolder folder;
  const std::string root = fs::canonical(folder.path()).string();
  fs::create_directories(root + "/disk/sub");
  fs::create_directory_symlink("disk/sub", root + "/link");
  fs::create_directory_symlink("nowhere", root + "/broken");
  EXPECT_EQ(AbsolutePath(root + "/link/../a/./b"), root + "/disk/a/b");
  EXPECT_EQ(AbsolutePath(root + "/link/../../a"), root + "/a");
  EXPECT_EQ(AbsolutePath(root + "/disk/sub/../../a//b/"), root + "/a/b");
  EXPECT_EQ(AbsolutePath(root + "/link/"), root + "/link") << "hosts may have it for other places";
  EXPECT_EQ(AbsolutePath(root + "/missing/../a"), root + "/a");
  EXPECT_EQ(AbsolutePath(root + "/broken/../a"), root + "/broken/../a");
  EXPECT_EQ(AbsolutePath("a/"), fs::current_path().string() + "/a");
  EXPECT_EQ(AbsolutePath("/.././"), "/");
  EXPECT_EQ(AbsolutePath(""), "");
}

TEST(MappedFile, SaysThatAFileSystemMapsNoFiles) {
  const std::string path = "/sys/devices/system/cpu/online";  // sysfs: readable, not mappable
  if (::access(path.c_str(), R_OK) != 0) GTEST_SKIP() << "no " << path << " here";
  const absl::Status status = MappedFile::Open(path).status();
  if (status.ok()) GTEST_SKIP() << path << " can be mapped here";
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string message(status.message());
  EXPECT_NE(message.find(path + ": its file system does not support memory-mapped files"),
            std::string::npos)
      << status;
  EXPECT_NE(message.find("local disk"), std::string::npos) << status;
}

TEST(File, AFileThatIsTooLargeNamesTheLimit) {
  const absl::Status status = FileError(EFBIG, "write", "a/b");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "cannot write a/b: File too large; raise `ulimit -f`, or choose a folder on another "
            "disk");
}

TEST(ReplaceFile, KeepsTheOldContentsIfTheNewOnesFail) {
  const TestFolder folder;
  const std::string path = folder.path() + "/a";
  ASSERT_TRUE(WriteFile(path, "old").ok());
  const absl::Status failed = ReplaceFile(path, [](FileWriter& file) {
    const absl::Status written = file.Append("new");
    return written.ok() ? absl::AbortedError("stopped") : written;
  });
  EXPECT_EQ(failed, absl::AbortedError("stopped"));
  EXPECT_EQ(*ReadWholeFile(path, 100), "old");
  EXPECT_EQ(*NamesInFolder(folder.path()), std::vector<std::string>{"a"});
  ASSERT_TRUE(ReplaceFile(path, [](FileWriter& file) { return file.Append("new"); }).ok());
  EXPECT_EQ(*ReadWholeFile(path, 100), "new");
}

TEST(MappedFile, OpensAnEmptyFileAndMoves) {
  const std::string path = PathOf("empty");
  auto writer = FileWriter::Create(path);
  ASSERT_TRUE(writer.ok() && writer->Finish().ok());
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->bytes().empty());
  const MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.path(), path);
}

TEST(FolderOf, IsWhatPrecedesTheLastSlash) {
  EXPECT_EQ(FolderOf("a/b/c"), "a/b");
  EXPECT_EQ(FolderOf("c"), ".");
  EXPECT_EQ(FolderOf("/c"), "/");
}

TEST(MakeFolder, AcceptsAnExistingFolderAndRefusesAMissingParent) {
  const TestFolder folder;
  EXPECT_TRUE(MakeFolder(folder.path() + "/a").ok());
  EXPECT_TRUE(MakeFolder(folder.path() + "/a").ok());
  EXPECT_TRUE(absl::IsNotFound(MakeFolder(folder.path() + "/b/c")));
}

}  // namespace
}  // namespace tug
