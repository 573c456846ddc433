#include "cli/remote_program.h"

#include <limits.h>
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
                        .argv = {"worker", "", "x\ny", "\xff"},
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
  const std::string line = ToLine(AnAttachment().program);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const absl::StatusOr<RemoteProgram> parsed = ParseRemoteProgram(line);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToLine(*parsed), line);
  EXPECT_EQ(parsed->argv[2], "x\ny");
  EXPECT_EQ(parsed->input, "name: \"a\"\n");
  EXPECT_EQ(parsed->silence, absl::Milliseconds(2500));
  EXPECT_TRUE(parsed->detached && parsed->ends_in_order);
}

TEST(RemoteProgram, IsPartOfAnAttachment) {
  const std::string text = ToText(AnAttachment());
  const absl::StatusOr<Attachment> parsed = ParseAttachment(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToText(*parsed), text);
  EXPECT_EQ(parsed->connection.back(), "exec 'a b' attend");
}

TEST(RemoteProgram, RefusesWhatItDoesNotUnderstand) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string line = ToLine(AnAttachment().program);
  for (int i = 0; i < 2000; ++i) {
    std::string broken = line.substr(0, random() % line.size());
    if (!broken.empty()) broken[random() % broken.size()] = static_cast<char>(random());
    const absl::Status status = ParseRemoteProgram(broken).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << broken;
  }
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

TEST(PipeWriter, NeverWaitsForItsReader) {
  IgnoreBrokenPipes();
  Pipe pipe = NewPipe().value();
  PipeWriter writer(pipe.write_end.get());
  const std::string line = std::string(999, 'x') + "\n";
  size_t taken = 0;
  while (writer.AppendIfRoom(line)) {
    writer.Flush();
    ++taken;
  }
  EXPECT_GT(taken * line.size(), PipeWriter::kMostBytes);
  size_t got = 0;
  while (got < taken * line.size()) {
    const std::optional<std::string> bytes = ReadWhatIsThere(pipe.read_end.get());
    ASSERT_TRUE(bytes.has_value());
    got += bytes->size();
    writer.Flush();
  }
  EXPECT_EQ(got, taken * line.size());
  EXPECT_TRUE(writer.empty());
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
