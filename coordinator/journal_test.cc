// SPDX-License-Identifier: Apache-2.0
#include "coordinator/journal.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <span>
#include <thread>
#include <utility>

#include "base/files/record_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

JournalRecord Begin() {
  JournalRecord record;
  record.mutable_begin()->set_job(7);
  record.mutable_begin()->set_run_dir("/runs/job-1");
  return record;
}

JournalRecord Lost(uint32_t node) {
  JournalRecord record;
  record.set_time_ns(node);
  record.mutable_lost()->set_node_id(node);
  record.mutable_lost()->set_how("its connection was closed");
  return record;
}

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }

  // Writes one batch per record.
  void WriteJournal(uint32_t records) const {
    const auto journal = FileJournal::Create(path_, Begin());
    ASSERT_TRUE(journal.ok()) << journal.status();
    for (uint32_t i = 1; i <= records; ++i) {
      (*journal)->Append(Lost(i));
      ASSERT_TRUE((*journal)->Sync((*journal)->position()).ok());
    }
  }
  absl::StatusOr<std::unique_ptr<FileJournal>> RecoverState(std::vector<uint32_t>& nodes) const {
    return FileJournal::RecoverState(path_, [&](const JournalRecord& record) {
      nodes.push_back(record.lost().node_id());
      return absl::OkStatus();
    });
  }

  // Node ids of the records in the file; 0 for the first record.
  std::vector<uint32_t> Read() const {
    std::vector<uint32_t> nodes;
    const auto journal = RecoverState(nodes);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return nodes;
  }

  const fs::path root_ = fs::path(::testing::TempDir()) / "journal_test";
  const std::string path_ = (root_ / "journal").string();
};

TEST_F(JournalTest, GivesRecordsBackInOrderAndGoesOnAfterThem) {
  WriteJournal(3);
  for (uint32_t more = 4; more <= 6; ++more) {
    std::vector<uint32_t> nodes;
    const auto journal = RecoverState(nodes);
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ(nodes.size(), more);
    EXPECT_EQ(nodes.back(), more - 1);
    EXPECT_EQ((*journal)->position(), more);
    (*journal)->Append(Lost(more));
    ASSERT_TRUE((*journal)->Sync((*journal)->position()).ok());
  }
}

TEST_F(JournalTest, LosesOnlyRecordsThatWereNotSynced) {
  auto journal = FileJournal::Create(path_, Begin());
  ASSERT_TRUE(journal.ok());
  (*journal)->Append(Lost(1));
  ASSERT_TRUE((*journal)->Sync(2).ok());
  (*journal)->Append(Lost(2));
  journal->reset();
  EXPECT_EQ(Read(), (std::vector<uint32_t>{0, 1}));
}

TEST_F(JournalTest, SyncsNothingThatIsDurableAlready) {
  const auto journal = FileJournal::Create(path_, Begin());
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ((*journal)->syncs(), 1u);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE((*journal)->Sync((*journal)->position()).ok());
  EXPECT_EQ((*journal)->syncs(), 1u);
  for (uint32_t i = 1; i <= 5; ++i) (*journal)->Append(Lost(i));
  ASSERT_TRUE((*journal)->Sync((*journal)->position()).ok());
  ASSERT_TRUE((*journal)->Sync(3).ok());
  EXPECT_EQ((*journal)->syncs(), 2u) << "one for all";
}

TEST_F(JournalTest, ManyThreadsLoseNothingAndShareSyncs) {
  constexpr uint32_t kThreads = 8, kRecords = 50;
  auto journal = FileJournal::Create(path_, Begin());
  ASSERT_TRUE(journal.ok());
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kRecords; ++i) {
        (*journal)->Append(Lost(1 + t * kRecords + i));
        failed += !(*journal)->Sync((*journal)->position()).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_LE((*journal)->syncs(), 1 + kThreads * kRecords);
  std::vector<uint32_t> nodes = Read();
  std::sort(nodes.begin(), nodes.end());
  ASSERT_EQ(nodes.size(), 1 + kThreads * kRecords);
  for (uint32_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i], i);
}

TEST_F(JournalTest, CutsOffATornLastBatchAndContinuesAfterTheOneBefore) {
  WriteJournal(3);
  fs::resize_file(path_, fs::file_size(path_) - 1);
  std::vector<uint32_t> nodes;
  auto journal = RecoverState(nodes);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(nodes, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ((*journal)->position(), 3u);
  (*journal)->Append(Lost(9));
  ASSERT_TRUE((*journal)->Sync(4).ok());
  journal->reset();
  EXPECT_EQ(Read(), (std::vector<uint32_t>{0, 1, 2, 9}));
}

TEST_F(JournalTest, DamageIsReportedWithFileAndRemedy) {
  const auto expect_damage = [this] {
    std::vector<uint32_t> nodes;
    const absl::Status status = RecoverState(nodes).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(path_ + " is damaged"),
                      HasSubstr("; continue from the last checkpoint: tug train --resume " +
                                root_.string())));
  };
  WriteJournal(3);
  std::fstream(path_, std::ios::in | std::ios::out).seekp(60).put('\x7f');
  expect_damage();
  // Complete batches that hold no record.
  const std::string batch = "\x09";
  auto file = RecordFileWriter::Create({.magic = "TUGJOURN", .version = 2}, path_);
  ASSERT_TRUE(file.ok()) << file.status();
  expect_damage();
  ASSERT_TRUE(file->Append(std::as_bytes(std::span(batch))).ok());
  expect_damage();
}

TEST_F(JournalTest, SaysWhenThereIsNone) {
  std::vector<uint32_t> nodes;
  EXPECT_EQ(RecoverState(nodes).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(path_).flush();
  EXPECT_EQ(RecoverState(nodes).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalTest, AfterAWriteThatFailedNothingIsDurableAnyMore) {
  const auto journal = FileJournal::Create("/dev/full", Begin());
  EXPECT_FALSE(journal.ok());
}

}  // namespace
}  // namespace tug
