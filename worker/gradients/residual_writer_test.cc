// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/residual_writer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "base/files/test_folder.h"
#include "checkpoint/checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kElements = 1024;

// Two segments of one block.
class ResidualWriterTest : public testing::Test {
 protected:
  ResidualWriterTest() {
    BlockTable blocks;
    BlockSpec& block = *blocks.add_blocks();
    block.set_name("only");
    block.add_tensors()->add_shape(2 * kElements);
    table_ = *SegmentTable::Create(blocks, kElements);
    writer_.emplace(
        ResidualWriter::Options{.run_dir = run_, .block_names = {"only"}, .timeline = 2}, table_);
  }

  void Add(uint32_t virtual_worker, uint64_t version, uint32_t view = 0) {
    writer_->AwaitIdle();
    ResidualWriter::Copy copy{
        .order = {.virtual_worker = virtual_worker, .versions = {version}, .view = view}};
    copy.residuals.push_back({1, AlignedBuffer(kElements * sizeof(float))});
    std::ranges::fill(copy.residuals.back().values.floats(), static_cast<float>(version));
    writer_->Add(std::move(copy));
  }
  std::vector<CheckpointPart> Parts() {
    writer_->AwaitIdle();
    HeartbeatRequest beat;
    beat.set_finished(true);
    writer_->AddTo(beat);
    EXPECT_TRUE(beat.finished());
    return {beat.parts().begin(), beat.parts().end()};
  }

  const TestFolder folder_;
  const std::string& run_ = folder_.path();
  SegmentTable table_;
  std::optional<ResidualWriter> writer_;
};

TEST_F(ResidualWriterTest, WritesWhatACheckpointCanRead) {
  Add(3, 10);
  Add(4, 10, 7);
  const std::vector<CheckpointPart> parts = Parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].file(), "residual-003-timeline-2.safetensors");
  EXPECT_EQ(parts[1].file(), "residual-004-timeline-2-view-7.safetensors");
  Manifest manifest;
  manifest.set_version(10);
  for (const CheckpointPart& part : parts) {
    EXPECT_EQ(part.error(), "");
    ManifestFile& file = *manifest.add_files();
    file.set_name(part.file());
    file.set_size_bytes(part.size_bytes());
    file.set_xxh3(part.xxh3());
    file.set_virtual_worker(part.virtual_worker());
  }
  const auto folder = CommitCheckpoint(run_, manifest, {});
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto reader = ResidualReader::Open(*folder, 4);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE(reader->has_value());
  std::vector<float> values(kElements);
  EXPECT_EQ((*reader)->Read("only", 0, kElements, values), ResidualReader::Found::kNothing);
  EXPECT_EQ((*reader)->Read("only", kElements, 2 * kElements, values), ResidualReader::Found::kAll);
  EXPECT_EQ(values, std::vector<float>(kElements, 10.0f));
  EXPECT_TRUE(CheckpointReader::Open(*folder).ok()) << "which holds no weights";
}

TEST_F(ResidualWriterTest, VirtualWorkerWithoutResidualHasPartWithoutFile) {
  writer_->Add({.order = {.virtual_worker = 2, .versions = {5}}});
  const std::vector<CheckpointPart> parts = Parts();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].virtual_worker(), 2u);
  EXPECT_EQ(parts[0].version(), 5u);
  EXPECT_EQ(parts[0].file(), "");
  EXPECT_EQ(parts[0].error(), "");
  EXPECT_TRUE(std::filesystem::is_empty(run_));
}

TEST_F(ResidualWriterTest, OnceCancelledNobodyWaitsAndNothingIsBegun) {
  EXPECT_TRUE(writer_->AwaitIdle());
  writer_->Cancel();
  EXPECT_FALSE(writer_->AwaitIdle());
  Add(3, 10);
  EXPECT_TRUE(Parts().empty());
  EXPECT_TRUE(std::filesystem::is_empty(run_));
}

TEST_F(ResidualWriterTest, AFolderThatIsNotTheJobsIsRefusedWithTheRemedy) {
  std::filesystem::create_directories(run_ + "/data");
  const absl::Status status = ResidualWriter::CheckRunFolder(run_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("error_feedback=false"));
  std::ofstream(run_ + "/config.textproto") << "seed: 1";
  EXPECT_TRUE(ResidualWriter::CheckRunFolder(run_).ok());
}

TEST_F(ResidualWriterTest, SaysWhyAFileCannotBeWritten) {
  std::filesystem::remove_all(run_);
  Add(1, 10);
  const std::vector<CheckpointPart> parts = Parts();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].file(), "");
  EXPECT_THAT(parts[0].error(), HasSubstr("the run folder"));
}

}  // namespace
}  // namespace tug
