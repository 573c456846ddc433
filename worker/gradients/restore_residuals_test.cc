// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/restore_residuals.h"

#include <fstream>
#include <string>
#include <vector>

#include "base/files/test_folder.h"
#include "checkpoint/checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

// A block of four segments; virtual worker 3 has residuals in the second and third.
class RestoreResidualsTest : public testing::Test {
 protected:
  static constexpr uint64_t kElements = 1024;

  RestoreResidualsTest() {
    BlockSpec& block = *blocks_.add_blocks();
    block.set_name("only");
    TensorSpec& tensor = *block.add_tensors();
    tensor.add_shape(4 * kElements);
    tensor.set_weight_decay(true);
    codec_.mutable_top_k()->set_density(0.1);
    codec_.set_error_feedback(true);
    codec_.set_blocks("*");
  }

  static float ValueAt(uint64_t element) { return 0.5f + static_cast<float>(element); }

  // `beside`: floats of state after each segment's residual.
  std::string Write(uint64_t beside, const std::vector<uint64_t>& clocks = {}) {
    std::vector<float> values;
    for (uint64_t e = kElements; e < 3 * kElements; ++e) values.push_back(ValueAt(e));
    std::vector<std::vector<float>> with_state;
    std::vector<ResidualPart> parts;
    for (uint64_t s : {1, 2}) {
      const float* const begin = values.data() + (s - 1) * kElements;
      with_state.emplace_back(begin, begin + kElements);
      with_state.back().resize(kElements + beside, 7.0f);
    }
    for (uint64_t s : {1, 2}) {
      parts.push_back({"only", s * kElements, (s + 1) * kElements, with_state[s - 1]});
    }
    const absl::StatusOr<PartFile> file = WriteResidualPart(run_, 20, 3, parts);
    EXPECT_TRUE(file.ok()) << file.status();
    Manifest manifest;
    manifest.set_version(20);
    manifest.mutable_clocks()->Assign(clocks.begin(), clocks.end());
    ManifestFile& listed = *manifest.add_files();
    listed.set_name(file->name);
    listed.set_size_bytes(file->size_bytes);
    listed.set_xxh3(file->xxh3);
    listed.set_virtual_worker(3);
    const absl::StatusOr<std::string> folder = CommitCheckpoint(run_, manifest, {});
    EXPECT_TRUE(folder.ok()) << folder.status();
    return folder.value_or("");
  }
  absl::StatusOr<RestoredResiduals> Read(const std::string& folder, uint64_t segment_elements,
                                         uint32_t virtual_worker = 3, uint64_t clock = 20) {
    table_ = *SegmentTable::Create(blocks_, segment_elements);
    const std::vector<std::string> names = {"only"};
    return ReadResiduals(folder, names, table_, CodecChoice(codec_, names), virtual_worker, clock);
  }

  const TestFolder folder_;
  const std::string& run_ = folder_.path();
  BlockTable blocks_;
  SegmentTable table_;
  PushCodecConfig codec_;
};

TEST_F(RestoreResidualsTest, HasTheBitsThatWereWritten) {
  const auto restored = Read(Write(0), kElements);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->notice, "");
  ASSERT_EQ(restored->residuals.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    const SegmentResidual& residual = restored->residuals[i];
    EXPECT_EQ(residual.segment, i + 1);
    ASSERT_EQ(residual.values.size_bytes(), kElements * sizeof(float));
    for (uint64_t e = 0; e < kElements; ++e) {
      ASSERT_EQ(residual.values.floats()[e], ValueAt((i + 1) * kElements + e));
    }
  }
}

TEST_F(RestoreResidualsTest, SegmentsOfAnotherLengthFindTheirElements) {
  const auto restored = Read(Write(0), 2 * kElements);
  ASSERT_TRUE(restored.ok()) << restored.status();
  ASSERT_EQ(restored->residuals.size(), 2u);
  for (uint32_t id = 0; id < 2; ++id) {
    const std::span<const float> values = restored->residuals[id].values.floats();
    for (uint64_t e = 0; e < 2 * kElements; ++e) {
      const uint64_t element = id * 2 * kElements + e;
      const bool kept = element >= kElements && element < 3 * kElements;
      ASSERT_EQ(values[e], kept ? ValueAt(element) : 0.0f) << element;
    }
  }
}

TEST_F(RestoreResidualsTest, GoesOnWithoutAndSaysSoIfTheCodecKeepsOtherThings) {
  const std::string folder = Write(16);
  for (const uint64_t segment_elements : {kElements, 2 * kElements}) {
    const auto restored = Read(folder, segment_elements);
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_TRUE(restored->residuals.empty());
    EXPECT_THAT(restored->notice, HasSubstr("virtual worker 3 continues without"));
  }
}

TEST_F(RestoreResidualsTest, OthersAndOtherClocksHaveNone) {
  const std::string folder = Write(0, {20, 20, 20, 23});
  for (const auto& [virtual_worker, clock] : {std::pair(2u, 20u), {3u, 20u}}) {
    const auto restored = Read(folder, kElements, virtual_worker, clock);
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_TRUE(restored->residuals.empty());
    EXPECT_EQ(restored->notice, "");
  }
  EXPECT_EQ(Read(folder, kElements, 3, 23)->residuals.size(), 2u);
}

TEST_F(RestoreResidualsTest, AFolderThatIsNotSeenIsNoCheckpointWithoutThem) {
  const auto restored = Read(run_ + "/elsewhere/checkpoints/step-00000020", kElements);
  EXPECT_TRUE(absl::IsNotFound(restored.status())) << restored.status();
}

TEST_F(RestoreResidualsTest, ADamagedFileIsRefused) {
  const std::string folder = Write(0);
  const std::string path = folder + "/residual-003.safetensors";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2000);
  file.put('\x55');
  file.close();
  const auto restored = Read(folder, kElements);
  EXPECT_TRUE(absl::IsDataLoss(restored.status())) << restored.status();
  EXPECT_THAT(std::string(restored.status().message()), HasSubstr("residual-003.safetensors"));
}

// A worker that joins late must not ask for a checkpoint that may be deleted by then.
TEST(ResidualsToRestore, LeavesOutVirtualWorkersThatWentOnElsewhere) {
  View view;
  view.set_number(4);
  view.set_placement(4);
  view.set_start_version(10);
  WorkerPlace place;
  place.virtual_workers = {1, 3};
  place.start_clocks = {10, 12};
  const SyncMode& bsp = SyncModeOf(SyncConfig::BSP);
  EXPECT_THAT(ResidualsToRestore(view, place, bsp), testing::IsEmpty()) << "nothing to restore";
  view.set_restore_path("run/checkpoints/step-00000010");
  EXPECT_THAT(ResidualsToRestore(view, place, bsp), testing::ElementsAre(0));
  // Versions count pushes: the checkpoint states the clocks it is for.
  EXPECT_THAT(ResidualsToRestore(view, place, SyncModeOf(SyncConfig::SSP)),
              testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace tug
