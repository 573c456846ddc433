// SPDX-License-Identifier: Apache-2.0
#include "base/files/record_file.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <random>
#include <vector>

#include "base/files/file.h"
#include "base/files/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

constexpr size_t kFileHeader = 32, kRecordHeader = 16;

const RecordFileKind kKind = {.magic = "TUGTESTS",
                              .version = 3,
                              .damage_remedy = "write it again",
                              .version_remedy = "use the version that wrote it"};

class RecordFileTest : public ::testing::Test {
 protected:
  static absl::Status Append(const RecordFileWriter& writer, const std::string& text) {
    return writer.Append(std::as_bytes(std::span(text)));
  }
  // Returns the bytes of a file with these records.
  std::string Write(const Texts& texts) const {
    const auto writer = RecordFileWriter::Create(kKind, path_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (const std::string& text : texts) EXPECT_TRUE(Append(*writer, text).ok());
    EXPECT_TRUE(writer->Sync().ok());
    return ReadWholeFile(path_, 1 << 20).value();
  }
  absl::StatusOr<Texts> TextsIn(const std::string& bytes,
                                const RecordFileKind& kind = kKind) const {
    Texts texts;
    const auto extent = ReadRecords(
        kind, path_, std::as_bytes(std::span(bytes)), [&](std::span<const std::byte> payload) {
          texts.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
          return absl::OkStatus();
        });
    if (!extent.ok()) return extent.status();
    EXPECT_EQ(extent->whole_bytes + extent->torn_bytes, bytes.size());
    EXPECT_EQ(extent->whole_bytes > 0, bytes.size() >= kFileHeader);
    return texts;
  }

  const TestFolder folder_;
  const std::string path_ = folder_.path() + "/records";
  const Texts texts_ = {"one", "", std::string(300, 'x'), "four"};
  const Texts but_the_last_ = {texts_.begin(), texts_.end() - 1};
};

TEST_F(RecordFileTest, ReturnsRecordsOfAnySizeInOrder) {
  EXPECT_EQ(TextsIn(Write({})).value(), Texts());
  EXPECT_EQ(TextsIn(Write(texts_)).value(), texts_);
}

TEST_F(RecordFileTest, TruncatedAnywhereIsReadUpToTheLastCompleteRecord) {
  const std::string whole = Write(texts_);
  for (size_t size = 0; size < whole.size(); ++size) {
    const Texts texts = TextsIn(whole.substr(0, size)).value();
    ASSERT_LT(texts.size(), texts_.size()) << size;
    ASSERT_TRUE(std::equal(texts.begin(), texts.end(), texts_.begin())) << size;
  }
}

TEST_F(RecordFileTest, ATornEndIsCutOffAndTheFileContinued) {
  const auto ignore = [](std::span<const std::byte>) { return absl::OkStatus(); };
  const std::string whole = Write(texts_);
  for (size_t size = kFileHeader; size <= whole.size(); size += 11) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    Texts texts = TextsIn(whole.substr(0, size)).value();
    const auto writer =
        RecordFileWriter::Continue(path_, ReadRecordFile(kKind, path_, ignore).value());
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(Append(*writer, "more").ok());
    texts.push_back("more");
    ASSERT_EQ(TextsIn(ReadWholeFile(path_, 1 << 20).value()).value(), texts) << size;
  }
}

// A disk may have written the last blocks of a file in any order, or its length only.
TEST_F(RecordFileTest, BlocksOfTheLastRecordThatNeverReachedTheDiskAreATornEnd) {
  std::string bytes = Write(texts_);
  std::fill(bytes.end() - 10, bytes.end(), '\0');
  EXPECT_EQ(TextsIn(bytes).value(), but_the_last_);
  EXPECT_EQ(TextsIn(bytes + std::string(5000, '\0')).value(), but_the_last_);
}

TEST_F(RecordFileTest, AFlippedBitIsDamageBeforeTheLastRecordAndATornEndInIt) {
  const std::string whole = Write(texts_);
  const size_t last = whole.size() - kRecordHeader - texts_.back().size();
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string bytes = whole;
    bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << (byte % 8)));
    const auto texts = TextsIn(bytes);
    if (byte >= last) {
      ASSERT_EQ(texts.value(), but_the_last_) << byte;
      continue;
    }
    ASSERT_TRUE(absl::IsDataLoss(texts.status())) << byte;
    EXPECT_THAT(std::string(texts.status().message()),
                AllOf(HasSubstr(path_ + " is damaged: "), HasSubstr("; write it again")));
  }
}

TEST_F(RecordFileTest, RecordsOfAnotherFileAreNotRead) {
  const std::string other = Write(texts_);
  EXPECT_EQ(TextsIn(Write(texts_) + other.substr(kFileHeader)).value(), texts_) << "another salt";
}

TEST_F(RecordFileTest, RandomBytesAreNeverRead) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  Texts all;
  for (int i = 0; i < 20; ++i) all.push_back(std::string(random() % 100, static_cast<char>(i)));
  const std::string whole = Write(all);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    if (round % 3 == 0) bytes = std::string(random() % 300, '\0');
    for (int i = static_cast<int>(random() % 4); i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto texts = TextsIn(bytes);
    if (!texts.ok()) continue;
    ASSERT_LE(texts->size(), all.size());
    ASSERT_TRUE(std::equal(texts->begin(), texts->end(), all.begin())) << "round " << round;
  }
}

TEST_F(RecordFileTest, RefusesAnotherKindAndAnotherVersionWithTheRemedy) {
  const std::string bytes = Write(texts_);
  RecordFileKind other = kKind;
  other.magic = "TUGOTHER";
  EXPECT_EQ(TextsIn(bytes, other).status(),
            absl::DataLossError(path_ + " is damaged: it does not begin with \"TUGOTHER\"; write "
                                        "it again"));
  other = kKind;
  other.version = 4;
  EXPECT_EQ(TextsIn(bytes, other).status(),
            absl::FailedPreconditionError(path_ + " has format 3, this version of tug reads format "
                                                  "4: use the version that wrote it"));
}

TEST_F(RecordFileTest, ReturnsTheErrorOfTheReceiverAndOfTheFileSystem) {
  const auto refuse = [](std::span<const std::byte>) { return absl::CancelledError("enough"); };
  const absl::Status missing = ReadRecordFile(kKind, path_, refuse).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(path_));
  Write(texts_);
  EXPECT_EQ(ReadRecordFile(kKind, path_, refuse).status(), absl::CancelledError("enough"));
  const absl::Status full = RecordFileWriter::Create(kKind, "/dev/full").status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
}

}  // namespace
}  // namespace tug
