// SPDX-License-Identifier: Apache-2.0
#include "base/standard_error.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/pipe_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

// Descriptor 2 is a pipe without a reader until Read is called.
class StandardErrorTest : public ::testing::Test {
 protected:
  StandardErrorTest() : before_(dup(STDERR_FILENO)) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end_ = FileDescriptor(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
  }
  ~StandardErrorTest() override { dup2(before_.get(), STDERR_FILENO); }

  // Returns all output not read yet.
  std::string Read() {
    std::string all;
    for (;;) {
      WriteStandardError("");  // flushes buffered text
      pollfd readable{read_end_.get(), POLLIN, 0};
      if (poll(&readable, 1, 0) <= 0) return all;
      char bytes[1 << 14];
      const ssize_t got = read(read_end_.get(), bytes, sizeof(bytes));
      if (got <= 0) return all;
      all.append(bytes, static_cast<size_t>(got));
    }
  }

 private:
  const FileDescriptor before_;
  FileDescriptor read_end_;
};

TEST_F(StandardErrorTest, WritesLinesAndProgress) {
  EXPECT_FALSE(StandardErrorIsTerminal());
  WriteStandardError("\rstep 1");
  PrintLineToStderr("a");
  WriteStandardError("b\nc\n");
  EXPECT_EQ(Read(), "\rstep 1a\nb\nc\n");
}

TEST_F(StandardErrorTest, CountsLinesThatNobodyReadAndDropsProgress) {
  const std::string line(1000, 'x');
  const size_t more = PipeWriter::kByteLimit / line.size() + 1000;
  for (size_t i = 0; i < more; ++i) {
    PrintLineToStderr(line);
    WriteStandardError("\rprogress");
  }
  const std::string said = Read();
  size_t shown = 0;
  for (size_t at = 0; (at = said.find("\rprogress", at)) != std::string::npos; ++at) ++shown;
  EXPECT_LT(shown, more / 4) << "while lines wait";
  PrintLineToStderr("the last one");
  EXPECT_THAT(Read(), testing::MatchesRegex("[0-9]+ lines were dropped\nthe last one\n"));
}

TEST(StandardErrorDeathTest, LastWordsAreWritten) { EXPECT_DEATH(Die("the end"), "the end\n"); }

}  // namespace
}  // namespace tug
