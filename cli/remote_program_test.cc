#include "cli/remote_program.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "cli/pipe.h"
#include "cli/pipe_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;

Attachment AnAttachment() {
  Attachment attachment;
  attachment.connection = {"ssh", "host", "exec 'a b' attend"};
  attachment.host = "host";
  attachment.prefix = "worker-0 host | ";
  attachment.log_path = "/tmp/a";
  attachment.program = {.name = "worker-0",
                        .argv = {"worker", "", "x\ny", "\xc3\xa9"},
                        .folder = "/home/me",
                        .input = "name: \"a\"\n",
                        .peers = {"10.0.0.1"},
                        .interfaces = {"eth0", "ib0"},
                        .run_dir = "/runs/a",
                        .silence = absl::Milliseconds(2500),
                        .detached = true,
                        .ends_in_order = true};
  return attachment;
}

TEST(RemoteProgram, IsOneLine) {
  const std::string line = ToLine(AnAttachment().program).value();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const absl::StatusOr<RemoteProgram> parsed = ParseRemoteProgram(line);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToLine(*parsed).value(), line);
  EXPECT_EQ(parsed->argv[2], "x\ny");
  EXPECT_EQ(parsed->input, "name: \"a\"\n");
  EXPECT_EQ(parsed->silence, absl::Milliseconds(2500));
  EXPECT_TRUE(parsed->detached && parsed->ends_in_order);
}

TEST(RemoteProgram, IsPartOfAnAttachment) {
  const std::string text = ToText(AnAttachment()).value();
  const absl::StatusOr<Attachment> parsed = ParseAttachment(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToText(*parsed).value(), text);
  EXPECT_EQ(parsed->connection.back(), "exec 'a b' attend");
}

TEST(RemoteProgram, RefusesToSendWhatIsNotUtf8) {
  Attachment attachment = AnAttachment();
  attachment.program.folder = "/home/\xff";
  EXPECT_EQ(ToLine(attachment.program).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToText(attachment).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RemoteProgram, RefusesWhatItDoesNotUnderstand) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string line = ToLine(AnAttachment().program).value();
  for (int i = 0; i < 2000; ++i) {
    std::string broken = line.substr(0, random() % line.size());
    if (!broken.empty()) broken[random() % broken.size()] = static_cast<char>(random());
    const absl::Status status = ParseRemoteProgram(broken).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << broken;
  }
}

TEST(RemoteProgram, IsToldSeveralTimesInASilenceThatItsLauncherLives) {
  RemoteProgram program;
  for (const absl::Duration silence : {absl::Milliseconds(30), absl::Seconds(2)}) {
    program.silence = silence;
    EXPECT_LE(AliveInterval(program), silence / 5);
  }
  program.silence = absl::Hours(1);
  EXPECT_EQ(AliveInterval(program), absl::Seconds(1));
}

TEST(LineReader, CutsBytesIntoLinesAndLongLinesIntoParts) {
  LineReader reader;
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) { lines.push_back(line); };
  reader.Read("a\n\nb", add);
  EXPECT_THAT(lines, ElementsAre("a", ""));
  reader.Read("c\nd", add);
  reader.Finish(add);
  reader.Finish(add);
  EXPECT_THAT(lines, ElementsAre("a", "", "bc", "d"));
  lines.clear();
  reader.Read(std::string(LineReader::kMostBytes + 1, 'x') + "\n", add);
  EXPECT_THAT(lines, ElementsAre(std::string(LineReader::kMostBytes, 'x'), "x"));
}

// Without anybody reading; once somebody does, all of it comes.
void ExpectTakesAll(int write_end, int read_end) {
  PipeWriter writer(write_end);
  const std::string line = std::string(999, 'x') + "\n";
  size_t taken = 0;
  while (writer.AppendIfRoom(line)) {
    writer.Flush();
    ++taken;
  }
  EXPECT_GT(taken * line.size(), PipeWriter::kMostBytes);
  size_t got = 0;
  while (got < taken * line.size()) {
    const std::optional<std::string> bytes = ReadWhatIsThere(read_end);
    ASSERT_TRUE(bytes.has_value());
    got += bytes->size();
    writer.Flush();
  }
  EXPECT_EQ(got, taken * line.size());
  EXPECT_TRUE(writer.empty());
}

TEST(PipeWriter, NeverWaitsForItsReader) {
  IgnoreBrokenPipes();
  const Pipe pipe = NewPipe().value();
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

TEST(PipeWriter, CountsTheLinesThatAreLeftOut) {
  const Pipe pipe = NewPipe().value();
  PipeWriter writer(pipe.write_end.get());
  writer.Append(std::string(PipeWriter::kMostBytes, 'x') + "\n");
  writer.AppendLineIfRoom("p ", "a");
  writer.AppendLineIfRoom("p ", "b");
  for (size_t got = 0; got < PipeWriter::kMostBytes + 1;) {
    writer.Flush();
    got += ReadWhatIsThere(pipe.read_end.get()).value().size();
  }
  writer.AppendLineIfRoom("p ", "c");
  writer.AppendLineIfRoom("p ", "d");
  writer.Flush();
  EXPECT_EQ(ReadWhatIsThere(pipe.read_end.get()), "p 2 lines are left out\np c\np d\n");
}

TEST(PipeWriter, ForgetsWhatNobodyReads) {
  IgnoreBrokenPipes();
  Pipe pipe = NewPipe().value();
  PipeWriter writer(pipe.write_end.get());
  pipe.read_end = FileDescriptor();
  writer.Append("a\n");
  writer.FlushUntil(absl::InfiniteFuture());
  writer.Append("b\n");
  EXPECT_TRUE(writer.empty());
}

}  // namespace
}  // namespace tug
