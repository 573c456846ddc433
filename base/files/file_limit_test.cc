// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/files/file_lock.h"
#include "base/files/file_writer.h"
#include "base/files/test_folder.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr rlim_t kLimit = 200;
constexpr rlim_t kReserve = kLimit / 16;

// Exits with 1 if `holds` is false. Called in a child process, since it lowers the limit.
void Require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "failed: " << what << "\n";
  _exit(1);
}

void LowerTheLimit(rlim_t files) {
  const rlimit limit{files, files};
  Require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

// Opens files until no descriptor is left, as unauthenticated peers can do with connections.
void TakeAllDescriptors() {
  while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
  }
  Require(errno == EMFILE, "there are none left");
}

class FileLimitTest : public ::testing::Test {
 protected:
  FileLimitTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  std::string Path(const std::string& name) { return folder_.path() + "/" + name; }
  const TestFolder folder_;
};

TEST_F(FileLimitTest, FilesAreOpenedWhenEveryDescriptorIsTaken) {
  EXPECT_EXIT(
      {
        LowerTheLimit(kLimit);
        Require(RaiseFileLimit().ok(), "RaiseFileLimit");
        TakeAllDescriptors();
        // Like checkpoint writes, more of them than the reserve has descriptors.
        for (rlim_t i = 0; i < 3 * kReserve; ++i) {
          const std::string path = Path("part");
          auto writer = FileWriter::Create(path);
          Require(writer.ok() && writer->Append("text").ok() && writer->Finish().ok(), "write");
          Require(ReadWholeFile(path, 100).value() == "text", "read");
          Require(TryFileLock(Path("lock")).ok(), "lock");
          Require(NamesInFolder(folder_.path()).value().size() == 2, "list");
          Require(SyncFolder(folder_.path()).ok(), "sync");
          Require(OpenStream(Path("log")) != nullptr, "open a stream");
          Require(RemoveAll(Path("log")).ok(), "remove");
        }
        Require(RemoveAll(folder_.path()).ok(), "remove a folder");
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(FileLimitTest, OnlyFilesGetTheReserve) {
  EXPECT_EXIT(
      {
        LowerTheLimit(kLimit);
        Require(RaiseFileLimit().ok(), "RaiseFileLimit");
        TakeAllDescriptors();
        for (int round = 0; round < 2; ++round) {
          std::vector<FileDescriptor> files;
          for (rlim_t i = 0; i < kReserve; ++i) {
            files.push_back(OpenFile("/dev/null", O_RDONLY));
            Require(files.back().valid(), "open");
            Require(open("/dev/null", O_RDONLY) < 0 && errno == EMFILE, "nobody else gets one");
          }
          Require(!OpenFile("/dev/null", O_RDONLY).valid() && errno == EMFILE, "it has an end");
        }
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(FileLimitTest, ALimitThatIsTooLowIsSaidAtOnce) {
  EXPECT_EXIT(
      {
        LowerTheLimit(kMinOpenFiles - 1);
        Require(absl::IsResourceExhausted(RaiseFileLimit()), "refused");
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tug
