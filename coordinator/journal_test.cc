// SPDX-License-Identifier: Apache-2.0
#include "coordinator/journal.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <thread>
#include <utility>

#include "base/files/file.h"
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
  std::string Bytes() const { return ReadWholeFile(path_, 1 << 20).value(); }
  void SetBytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  // Node ids of the records; 0 for the first record.
  absl::StatusOr<std::vector<uint32_t>> Read(const std::string& bytes) const {
    std::vector<uint32_t> nodes;
    const auto extent =
        ReadJournal(path_, std::as_bytes(std::span(bytes)), [&](const auto& record) {
          nodes.push_back(record.lost().node_id());
          return absl::OkStatus();
        });
    if (!extent.ok()) return extent.status();
    return nodes;
  }
  absl::StatusOr<std::unique_ptr<FileJournal>> RecoverState(std::vector<uint32_t>& nodes) const {
    return FileJournal::RecoverState(path_, [&](const JournalRecord& record) {
      nodes.push_back(record.lost().node_id());
      return absl::OkStatus();
    });
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
  EXPECT_EQ(Read(Bytes()).value(), (std::vector<uint32_t>{0, 1}));
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
  std::vector<uint32_t> nodes = Read(Bytes()).value();
  std::sort(nodes.begin(), nodes.end());
  ASSERT_EQ(nodes.size(), 1 + kThreads * kRecords);
  for (uint32_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i], i);
}

// The process was killed, or the power failed, at any byte of the last batch.
TEST_F(JournalTest, ALastBatchThatIsNotWholeIsCutOffWhereverItEnds) {
  WriteJournal(2);
  const std::string two = Bytes();
  WriteJournal(3);
  std::string three = Bytes();
  for (size_t size = two.size(); size < three.size(); ++size) {
    // Each file has its own salt: cut this one.
    SetBytes(three.substr(0, size));
    std::vector<uint32_t> nodes;
    auto journal = RecoverState(nodes);
    ASSERT_TRUE(journal.ok()) << size << ": " << journal.status();
    ASSERT_EQ(nodes, (std::vector<uint32_t>{0, 1, 2})) << size;
    (*journal)->Append(Lost(9));
    ASSERT_TRUE((*journal)->Sync(4).ok());
    journal->reset();
    ASSERT_EQ(Read(Bytes()).value(), (std::vector<uint32_t>{0, 1, 2, 9})) << size;
  }
}

TEST_F(JournalTest, BlocksOfTheLastBatchThatNeverReachedTheDiskAreATornEnd) {
  WriteJournal(3);
  std::string bytes = Bytes();
  std::fill(bytes.end() - 30, bytes.end(), '\0');
  EXPECT_EQ(Read(bytes).value(), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(Read(bytes + std::string(5000, '\0')).value(), (std::vector<uint32_t>{0, 1, 2}));
}

TEST_F(JournalTest, AFlippedBitAnywhereBeforeTheLastBatchIsDamageWithFileAndRemedy) {
  WriteJournal(2);
  const size_t end = Bytes().size();
  WriteJournal(3);
  const std::string whole = Bytes();
  for (size_t byte = 0; byte < end; ++byte) {
    std::string bytes = whole;
    bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << (byte % 8)));
    const auto nodes = Read(bytes);
    ASSERT_EQ(nodes.status().code(), absl::StatusCode::kDataLoss) << byte;
    EXPECT_THAT(std::string(nodes.status().message()),
                AllOf(HasSubstr(path_ + " is damaged"), HasSubstr("--resume " + root_.string())));
  }
  for (size_t byte = end; byte < whole.size(); ++byte) {
    std::string bytes = whole;
    bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << (byte % 8)));
    ASSERT_EQ(Read(bytes).value(), (std::vector<uint32_t>{0, 1, 2})) << byte;
  }
}

TEST_F(JournalTest, RandomBytesAreNeverRead) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  WriteJournal(20);
  const std::string whole = Bytes();
  const std::vector<uint32_t> all = Read(whole).value();
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    if (round % 3 == 0) bytes = std::string(random() % 300, '\0');
    for (int i = static_cast<int>(random() % 4); i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto nodes = Read(bytes);
    if (!nodes.ok()) continue;
    ASSERT_LE(nodes->size(), all.size());
    ASSERT_TRUE(std::equal(nodes->begin(), nodes->end(), all.begin())) << "round " << round;
  }
}

TEST_F(JournalTest, SaysWhenThereIsNone) {
  std::vector<uint32_t> nodes;
  EXPECT_EQ(RecoverState(nodes).status().code(), absl::StatusCode::kNotFound);
  SetBytes("");
  EXPECT_EQ(RecoverState(nodes).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalTest, AfterAWriteThatFailedNothingIsDurableAnyMore) {
  const auto journal = FileJournal::Create("/dev/full", Begin());
  EXPECT_FALSE(journal.ok());
}

}  // namespace
}  // namespace tug
