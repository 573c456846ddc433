// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/event_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/files/crc32c.h"
#include "base/files/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::StartsWith;

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'500);

uint64_t LittleEndian(const std::string& bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

// Unmasks and compares, as TensorFlow's reader does.
bool ChecksumHolds(const std::string& data, const std::string& masked) {
  const uint32_t rotated = static_cast<uint32_t>(LittleEndian(masked)) - 0xA282EAD8u;
  return ((rotated >> 17) | (rotated << 15)) == Crc32c(data);
}

std::vector<tensorboard::Event> ReadEvents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  const std::string bytes = text.str();
  std::vector<tensorboard::Event> events;
  for (size_t at = 0; at < bytes.size();) {
    const std::string length = bytes.substr(at, 8);
    EXPECT_TRUE(ChecksumHolds(length, bytes.substr(at + 8, 4)));
    const std::string data = bytes.substr(at + 12, LittleEndian(length));
    EXPECT_TRUE(ChecksumHolds(data, bytes.substr(at + 12 + data.size(), 4)));
    EXPECT_TRUE(events.emplace_back().ParseFromString(data));
    at += 16 + data.size();
  }
  return events;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    files.push_back(file.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The first event of every file that TensorFlow writes, here at time 1.0: its bytes in protocol
// buffer encoding (field 1, fixed64; field 3, bytes), in a TFRecord frame.
TEST(TfRecord, HasTheBytesOfTheFormat) {
  tensorboard::Event event;
  event.set_wall_time(1.0);
  event.set_file_version("brain.Event:2");
  const std::string data = event.SerializeAsString();
  EXPECT_EQ(absl::BytesToHexString(data), "09000000000000f03f1a0d627261696e2e4576656e743a32");
  const std::string record = TfRecord(data);
  EXPECT_EQ(absl::BytesToHexString(record.substr(0, 8)), "1800000000000000");
  // Checksum of the length 24, with which every event file begins.
  EXPECT_EQ(absl::BytesToHexString(record.substr(8, 4)), "a37f4b22");
  EXPECT_EQ(record.substr(12, 24), data);
  EXPECT_TRUE(ChecksumHolds(data, record.substr(36)));
}

TEST(EventFiles, HaveVersionStartAndScalars) {
  const TestFolder folder;
  EventFiles events(folder.path() + "/tensorboard", 1);
  events.Write(1, kNow, {{"train/loss", 2.5}, {"speed/overlap", 1}});
  events.Write(2, kNow, {{"train/loss", 2.25}});
  ASSERT_TRUE(events.status().ok()) << events.status();
  const std::vector<std::string> files = FilesIn(folder.path() + "/tensorboard");
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_THAT(std::filesystem::path(files[0]).filename().string(),
              StartsWith("events.out.tfevents.1700000000."));
  const std::vector<tensorboard::Event> read = ReadEvents(files[0]);
  ASSERT_THAT(read, SizeIs(4));
  EXPECT_EQ(read[0].file_version(), "brain.Event:2");
  EXPECT_DOUBLE_EQ(read[0].wall_time(), 1'700'000'000.5);
  EXPECT_EQ(read[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(read[1].step(), 1);
  EXPECT_EQ(read[2].step(), 1);
  ASSERT_THAT(read[2].summary().value(), SizeIs(2));
  EXPECT_EQ(read[2].summary().value(0).tag(), "train/loss");
  EXPECT_EQ(read[2].summary().value(0).simple_value(), 2.5f);
  EXPECT_EQ(read[3].step(), 2);
}

// Readers ignore a value without field 2, so 0 is written like any other number. The bytes are
// those of the protocol buffer encoding (field 1, a tag; field 2, fixed32).
TEST(EventFiles, HoldAZero) {
  const TestFolder folder;
  EventFiles events(folder.path(), 1);
  events.Write(1, kNow, {{"sync/skipped", 0}});
  const std::vector<tensorboard::Event> read = ReadEvents(FilesIn(folder.path())[0]);
  ASSERT_THAT(read, SizeIs(3));
  ASSERT_THAT(read[2].summary().value(), SizeIs(1));
  EXPECT_EQ(absl::BytesToHexString(read[2].summary().value(0).SerializeAsString()),
            "0a0c73796e632f736b69707065641500000000");
}

TEST(EventFiles, SayFromWhichStepOnTheyCount) {
  const TestFolder folder;
  EventFiles events(folder.path(), /*next_step=*/51);
  events.Skip(60);  // written by another process
  events.Write(61, kNow, {{"train/loss", 1}});
  events.GoBack(50, kNow);
  events.Write(51, kNow, {{"train/loss", 1}});
  const std::vector<std::string> files = FilesIn(folder.path());
  ASSERT_THAT(files, SizeIs(1));
  std::vector<int64_t> starts;
  for (const tensorboard::Event& event : ReadEvents(files[0])) {
    if (event.has_session_log()) starts.push_back(event.step());
  }
  EXPECT_THAT(starts, ElementsAre(61, 51));
}

// TensorBoard reads files in the order of their names.
TEST(EventFiles, AreReadInCreationOrderDespiteClockChanges) {
  const TestFolder folder;
  std::ofstream(folder.path() + "/notes.txt") << "no event file";
  uint64_t step = 1;
  for (const absl::Duration set_back : {absl::ZeroDuration(), absl::Hours(1), absl::Hours(2)}) {
    EventFiles events(folder.path(), step);
    events.Write(step, kNow - set_back, {{"train/loss", 1}});
    ASSERT_TRUE(events.status().ok()) << events.status();
    ++step;
  }
  EventFiles events(folder.path(), step);  // the clock is right again
  events.Write(step, kNow + absl::Hours(1), {{"train/loss", 1}});
  std::vector<int64_t> starts;
  for (const std::string& file : FilesIn(folder.path())) {
    if (file.find("tfevents") == std::string::npos) continue;
    for (const tensorboard::Event& event : ReadEvents(file)) {
      if (event.has_session_log()) starts.push_back(event.step());
    }
  }
  EXPECT_THAT(starts, ElementsAre(1, 2, 3, 4));
}

TEST(EventFiles, NameTheFileThatCannotBeWritten) {
  const TestFolder folder;
  std::ofstream(folder.path() + "/file") << "no folder";
  EventFiles events(folder.path() + "/file", 1);
  events.Write(1, kNow, {{"train/loss", 1}});
  EXPECT_THAT(std::string(events.status().message()), testing::HasSubstr("/file"));
}

}  // namespace
}  // namespace tug
