// SPDX-License-Identifier: Apache-2.0
#include "launch/remote_program.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/pipe.h"

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
  reader.Read(std::string(LineReader::kByteLimit + 1, 'x') + "\n", add);
  EXPECT_THAT(lines, ElementsAre(std::string(LineReader::kByteLimit, 'x'), "x"));
}

}  // namespace
}  // namespace tug
