// SPDX-License-Identifier: Apache-2.0
#include "base/pipe_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <string>

#include "absl/time/clock.h"
#include "base/file_descriptor.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

struct Pipe {
  FileDescriptor read_end, write_end;
};

Pipe NewPipe() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Non-blocking read: "" if nothing is available.
std::string ReadWhatIsThere(int fd) {
  pollfd readable{fd, POLLIN, 0};
  if (poll(&readable, 1, 0) <= 0) return "";
  char bytes[1 << 14];
  const ssize_t got = read(fd, bytes, sizeof(bytes));
  return std::string(bytes, static_cast<size_t>(got > 0 ? got : 0));
}

// Expects that AppendIfRoom and Flush never block without a reader, and that a later reader gets
// every byte.
void ExpectTakesAll(int write_end, int read_end) {
  PipeWriter writer(write_end);
  const std::string line = std::string(999, 'x') + "\n";
  size_t taken = 0;
  while (writer.AppendIfRoom(line)) {
    writer.Flush();
    ++taken;
  }
  EXPECT_GT(taken * line.size(), PipeWriter::kByteLimit);
  size_t got = 0;
  while (got < taken * line.size()) {
    got += ReadWhatIsThere(read_end).size();
    writer.Flush();
  }
  EXPECT_EQ(got, taken * line.size());
  EXPECT_TRUE(writer.empty());
}

TEST(PipeWriter, NeverWaitsForItsReader) {
  const Pipe pipe = NewPipe();
  ExpectTakesAll(pipe.write_end.get(), pipe.read_end.get());
}

TEST(PipeWriter, NeverWaitsForATerminal) {
  const FileDescriptor screen(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(screen.valid());
  ASSERT_EQ(grantpt(screen.get()), 0);
  ASSERT_EQ(unlockpt(screen.get()), 0);
  const FileDescriptor terminal(open(ptsname(screen.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal.valid());
  termios raw;
  ASSERT_EQ(tcgetattr(terminal.get(), &raw), 0);
  cfmakeraw(&raw);
  ASSERT_EQ(tcsetattr(terminal.get(), TCSANOW, &raw), 0);
  ExpectTakesAll(terminal.get(), screen.get());
  EXPECT_EQ(fcntl(terminal.get(), F_GETFL) & O_NONBLOCK, 0) << "others write there, too";
}

TEST(PipeWriter, NeverWaitsForASocket) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor write_end(ends[0]), read_end(ends[1]);
  ExpectTakesAll(write_end.get(), read_end.get());
  EXPECT_EQ(fcntl(write_end.get(), F_GETFL) & O_NONBLOCK, 0) << "others write there, too";
}

TEST(PipeWriter, CountsTheLinesThatAreLeftOut) {
  const Pipe pipe = NewPipe();
  PipeWriter writer(pipe.write_end.get());
  writer.Append(std::string(PipeWriter::kByteLimit, 'x') + "\n");
  writer.AppendLineIfRoom("p ", "a");
  writer.AppendLineIfRoom("p ", "b");
  for (size_t got = 0; got < PipeWriter::kByteLimit + 1;) {
    writer.Flush();
    got += ReadWhatIsThere(pipe.read_end.get()).size();
  }
  writer.AppendLineIfRoom("p ", "c");
  writer.AppendLineIfRoom("p ", "d");
  writer.Flush();
  EXPECT_EQ(ReadWhatIsThere(pipe.read_end.get()), "p 2 lines were dropped\np c\np d\n");
}

TEST(PipeWriter, ForgetsWhatNobodyReads) {
  Pipe pipe = NewPipe();
  PipeWriter writer(pipe.write_end.get());
  pipe.read_end = FileDescriptor();
  writer.Append("a\n");
  writer.FlushUntil(absl::InfiniteFuture());
  writer.Append("b\n");
  EXPECT_TRUE(writer.empty());
}

}  // namespace
}  // namespace tug
