// SPDX-License-Identifier: Apache-2.0
#include "base/files/record_file.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

const RecordFileKind kKind = {.magic = "TUGTESTS",
                              .version = 3,
                              .damage_remedy = "write it again",
                              .version_remedy = "use the version that wrote it"};

class RecordFileTest : public ::testing::Test {
 protected:
  static absl::Status Append(const RecordFileWriter& writer, const std::string& text) {
    return writer.Append(std::as_bytes(std::span(text)));
  }
  void Write(const Texts& texts) const {
    const auto writer = RecordFileWriter::Create(kKind, path_);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const std::string& text : texts) ASSERT_TRUE(Append(*writer, text).ok());
    ASSERT_TRUE(writer->Sync().ok());
  }
  std::string Bytes() const { return ReadWholeFile(path_, 1 << 20).value(); }
  void SetBytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  absl::StatusOr<Texts> Read(const std::string& bytes, const RecordFileKind& kind = kKind) const {
    Texts texts;
    const auto extent = ReadRecords(
        kind, path_, std::as_bytes(std::span(bytes)), [&](std::span<const std::byte> payload) {
          texts.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
          return absl::OkStatus();
        });
    if (!extent.ok()) return extent.status();
    EXPECT_EQ(extent->whole_bytes + extent->torn_bytes, bytes.size());
    return texts;
  }

  static constexpr size_t kFileHeader = 32, kRecordHeader = 16;
  const TestFolder folder_;
  const std::string path_ = folder_.path() + "/records";
  const Texts texts_ = {"one", "", std::string(300, 'x'), "four"};
};

std::string Flipped(std::string bytes, size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
  return bytes;
}

TEST_F(RecordFileTest, ReturnsRecordsOfAnySizeInOrder) {
  Write({});
  EXPECT_EQ(Read(Bytes()).value(), Texts());
  Write(texts_);
  EXPECT_EQ(Read(Bytes()).value(), texts_);
}

TEST_F(RecordFileTest, ReturnsTheErrorOfTheReceiver) {
  Write(texts_);
  int records = 0;
  const auto extent = ReadRecordFile(kKind, path_, [&](std::span<const std::byte>) {
    return ++records == 2 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(extent.status(), absl::CancelledError("enough"));
  EXPECT_EQ(records, 2);
}

TEST_F(RecordFileTest, TruncatedAnywhereIsReadUpToTheLastCompleteRecordAndContinued) {
  Write(texts_);
  const std::string whole = Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    SetBytes(whole.substr(0, size));
    Texts texts;
    const auto extent = ReadRecordFile(kKind, path_, [&](std::span<const std::byte> payload) {
      texts.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
      return absl::OkStatus();
    });
    ASSERT_TRUE(extent.ok()) << size << ": " << extent.status();
    EXPECT_EQ(extent->whole_bytes == 0, size < kFileHeader) << size;
    ASSERT_LT(texts.size(), texts_.size()) << size;
    ASSERT_TRUE(std::equal(texts.begin(), texts.end(), texts_.begin())) << size;
    if (extent->whole_bytes == 0) continue;
    const auto writer = RecordFileWriter::Continue(path_, *extent);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(Append(*writer, "more").ok());
    texts.push_back("more");
    ASSERT_EQ(Read(Bytes()).value(), texts) << size;
  }
}

// A disk may have written the last blocks of a file in any order, or its length only.
TEST_F(RecordFileTest, BlocksOfTheLastRecordThatNeverReachedTheDiskAreATornEnd) {
  Write(texts_);
  std::string bytes = Bytes();
  std::fill(bytes.end() - 10, bytes.end(), '\0');
  const Texts before(texts_.begin(), texts_.end() - 1);
  EXPECT_EQ(Read(bytes).value(), before);
  EXPECT_EQ(Read(bytes + std::string(5000, '\0')).value(), before);
}

TEST_F(RecordFileTest, AFlippedBitIsDamageBeforeTheLastRecordAndATornEndInIt) {
  Write(texts_);
  const std::string whole = Bytes();
  const size_t last = whole.size() - kRecordHeader - texts_.back().size();
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    const auto texts = Read(Flipped(whole, byte));
    if (byte < last) {
      ASSERT_TRUE(absl::IsDataLoss(texts.status())) << byte;
      EXPECT_THAT(std::string(texts.status().message()), HasSubstr(path_ + " is damaged: "))
          << byte;
      EXPECT_THAT(std::string(texts.status().message()), HasSubstr("; write it again")) << byte;
    } else {
      ASSERT_EQ(texts.value(), Texts(texts_.begin(), texts_.end() - 1)) << byte;
    }
  }
}

TEST_F(RecordFileTest, RecordsOfAnotherFileAreNotRead) {
  Write(texts_);
  const std::string first = Bytes();
  Write(texts_);
  EXPECT_EQ(Read(Bytes() + first.substr(kFileHeader)).value(), texts_) << "another salt";
}

TEST_F(RecordFileTest, RandomBytesAreNeverRead) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  Texts all;
  for (int i = 0; i < 20; ++i) all.push_back(std::string(random() % 100, static_cast<char>(i)));
  Write(all);
  const std::string whole = Bytes();
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    if (round % 3 == 0) bytes = std::string(random() % 300, '\0');
    for (int i = static_cast<int>(random() % 4); i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto texts = Read(bytes);
    if (!texts.ok()) continue;
    ASSERT_LE(texts->size(), all.size());
    ASSERT_TRUE(std::equal(texts->begin(), texts->end(), all.begin())) << "round " << round;
  }
}

TEST_F(RecordFileTest, RefusesAnotherKindAndAnotherVersionWithTheRemedy) {
  Write(texts_);
  RecordFileKind other = kKind;
  other.magic = "TUGOTHER";
  EXPECT_EQ(Read(Bytes(), other).status(),
            absl::DataLossError(absl::StrCat(
                path_, " is damaged: it does not begin with \"TUGOTHER\"; write it again")));
  other = kKind;
  other.version = 4;
  EXPECT_EQ(Read(Bytes(), other).status(),
            absl::FailedPreconditionError(absl::StrCat(path_,
                                                       " has format 3, this version of tug reads "
                                                       "format 4: use the version that wrote it")));
}

TEST_F(RecordFileTest, NamesTheFileItCannotReadOrWrite) {
  const auto ignore = [](std::span<const std::byte>) { return absl::OkStatus(); };
  const absl::Status missing = ReadRecordFile(kKind, path_, ignore).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(path_));
  EXPECT_TRUE(absl::IsNotFound(RecordFileWriter::Create(kKind, path_ + "/x").status()));
  const absl::Status full = RecordFileWriter::Create(kKind, "/dev/full").status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
}

}  // namespace
}  // namespace tug
