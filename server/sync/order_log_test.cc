// SPDX-License-Identifier: Apache-2.0
#include "server/sync/order_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/files/test_folder.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OrderLogTest : public testing::Test {
 protected:
  static OrderLogHeader Header(uint32_t lane = 0, uint32_t timeline = 1) {
    return {.timeline = timeline,
            .job = 77,
            .lane = lane,
            .lanes = 2,
            .virtual_workers = 4,
            .segments = 6,
            .start_version = 10};
  }
  static OrderRecord Record(uint64_t i) {
    return {.segment = static_cast<uint32_t>(i % 3),
            .virtual_worker = static_cast<uint32_t>(i % 4),
            .clock = i / 12,
            .version = 41 + i / 3,
            .weights_version = 40 + i / 5,
            .flags = i % 7 == 0 ? OrderRecord::kSkipped : 0};
  }
  // Writes `records` and, if `finish`, the trailer.
  void Write(const OrderLogHeader& header, uint64_t records, bool finish = true) {
    auto writer = OrderLogWriter::Create(run_, header);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (uint64_t i = 0; i < records; ++i) {
      (*writer)->Append(Record(i));
      if (i % 5000 == 4999) (*writer)->Flush();
    }
    if (finish) {
      ASSERT_TRUE((*writer)->Finish().ok());
    }
  }
  std::string Bytes(const std::string& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Replace(const std::string& path, const std::string& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  template <typename T>
  static std::vector<std::byte> BytesOf(const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return {bytes.begin(), bytes.end()};
  }

  const TestFolder folder_;
  const std::string& run_ = folder_.path();
};

TEST_F(OrderLogTest, ReadsWhatWasWrittenHoweverManyChunksThatIs) {
  for (const uint64_t records : {0u, 1u, 4095u, 4096u, 4097u, 100'000u}) {
    Write(Header(), records);
    const auto log = ReadOrderLog(OrderLogPath(run_, 1, 0));
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(log->header, Header());
    EXPECT_TRUE(log->complete);
    ASSERT_EQ(log->records.size(), records);
    for (uint64_t i = 0; i < records; ++i) ASSERT_EQ(log->records[i], Record(i)) << i;
  }
}

TEST_F(OrderLogTest, ReadsAFileThatEndsEarlyUpToItsLastWholeChunk) {
  Write(Header(), 10'000, /*finish=*/false);
  const std::string path = OrderLogPath(run_, 1, 0);
  const std::string bytes = Bytes(path);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{5000}}) {
    Replace(path, bytes.substr(0, bytes.size() - cut));
    const auto log = ReadOrderLog(path);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_FALSE(log->complete);
    EXPECT_EQ(log->records.size() < 10'000, cut > 0);
    EXPECT_GE(log->records.size(), 4096u);
  }
}

TEST_F(OrderLogTest, ReportsDamageWithFileAndRemedy) {
  Write(Header(), 20);
  const std::string path = OrderLogPath(run_, 1, 0);
  const std::string bytes = Bytes(path);
  std::string flipped = bytes;
  flipped[100] = static_cast<char>(flipped[100] ^ 1);
  for (const std::string& damaged :
       {std::string(), bytes.substr(0, 50), "x" + bytes.substr(1), bytes + "x", flipped}) {
    Replace(path, damaged);
    const absl::Status status = ReadOrderLog(path).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(path + " is damaged: "), HasSubstr("record it again")));
  }
}

TEST_F(OrderLogTest, RefusesRecordsThatBelongToNoLog) {
  const OrderLogHeader header = Header();
  const OrderRecord record = Record(0);
  const uint64_t two = 2;
  const std::vector<std::vector<std::byte>> chunks = {
      {}, BytesOf(two), std::vector<std::byte>(39), std::vector<std::byte>(41)};
  const std::string path = OrderLogPath(run_, 1, 0);
  Write(header, 0);  // makes the folders
  for (const std::vector<std::byte>& chunk : chunks) {
    const auto file = RecordFileWriter::Create(OrderLogKind(), path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Append(BytesOf(header)).ok());
    ASSERT_TRUE(file->Append(BytesOf(record)).ok());
    ASSERT_TRUE(file->Append(chunk).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadOrderLog(path).status())) << chunk.size();
  }
}

TEST_F(OrderLogTest, NoticesAVersionThatIsMissing) {
  auto writer = OrderLogWriter::Create(run_, Header());
  (*writer)->Append(Record(0));
  (*writer)->Append(Record(6));
  ASSERT_TRUE((*writer)->Finish().ok());
  const absl::Status status = ReadOrderLog(OrderLogPath(run_, 1, 0)).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 42 of segment 0 is missing"));
}

TEST_F(OrderLogTest, FindsTheLogsOfAllLanesOfTheNewestTimeline) {
  EXPECT_TRUE(absl::IsNotFound(ReadOrderLogs(run_).status()));
  for (const uint32_t lane : {0u, 1u}) {
    Write(Header(lane, 2), 5);
    Write(Header(lane, 12), 7);
  }
  const auto logs = ReadOrderLogs(run_);
  ASSERT_TRUE(logs.ok()) << logs.status();
  ASSERT_EQ(logs->size(), 2u);
  EXPECT_EQ((*logs)[1].header, Header(1, 12));
  EXPECT_EQ((*logs)[1].records.size(), 7u);
  OrderLogHeader other = Header(1, 12);
  other.job = 78;
  Write(other, 7);
  EXPECT_TRUE(absl::IsDataLoss(ReadOrderLogs(run_).status()));
  std::filesystem::remove(OrderLogPath(run_, 12, 1));
  const absl::Status missing = ReadOrderLogs(run_).status();
  EXPECT_THAT(std::string(missing.message()), HasSubstr("lane-001.order"));
}

TEST_F(OrderLogTest, SaysWhyItCannotBeWritten) {
  const auto writer = OrderLogWriter::Create(run_ + "/nowhere", Header());
  EXPECT_TRUE(absl::IsNotFound(writer.status())) << writer.status();
}

}  // namespace
}  // namespace tug
