// SPDX-License-Identifier: Apache-2.0
#include "server/replication/copy_store.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tug {
namespace {

constexpr uint64_t kElements = 1024;

OptimizerConfig Sgd() {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::SGD);
  config.set_schedule(OptimizerConfig::CONSTANT);
  config.set_learning_rate(1);
  return config;
}

// Replicas of the second of two segments; the optimizer keeps no state.
class CopyStoreTest : public testing::Test {
 protected:
  explicit CopyStoreTest(const CopyStore::Options& options = {.start_version = 5})
      : table_(Table()),
        optimizer_(MakeOptimizer(Sgd())),
        copies_(options, table_, std::vector<uint32_t>{1}, *optimizer_) {}

  static SegmentTable Table() {
    BlockTable blocks;
    blocks.add_blocks()->add_tensors()->add_shape(2 * kElements);
    return *SegmentTable::Create(blocks, kElements);
  }
  // Sends an update with mean gradient `mean`; none: skipped.
  bool Update(uint64_t version, std::optional<float> mean, uint32_t virtual_worker = 0) {
    const std::vector<float> gradient(mean.has_value() ? kElements : 0, mean.value_or(0));
    const SegmentUpdate update{.step = {.t = version},
                               .norm = {.sum_of_squares = static_cast<double>(version)},
                               .gradient = gradient};
    std::vector<std::byte> payload(UpdatePayloadBytes(update));
    WriteUpdatePayload(update, payload);
    return copies_.OnUpdate(1, version, virtual_worker, payload);
  }
  bool Copy(uint64_t version, float weight, std::optional<float> previous = std::nullopt) {
    const std::vector<float> weights(kElements, weight);
    const std::vector<float> before(previous.has_value() ? kElements : 0, previous.value_or(0));
    const HeldSegment held{.weights = weights,
                           .m = {},
                           .v = {},
                           .previous = std::as_bytes(std::span(before)),
                           .clocks = clocks_,
                           .norm = {}};
    std::vector<std::byte> payload(CopyPayloadBytes(held));
    WriteCopyPayload(held, payload);
    return copies_.OnCopy(1, version, payload);
  }
  float Weight() { return copies_.weights(1)[kElements - 1]; }
  std::optional<float> Previous() const {
    const std::span<const std::byte> bytes = copies_.Held(1)->previous;
    if (bytes.empty()) return std::nullopt;
    return reinterpret_cast<const float*>(bytes.data())[kElements - 1];
  }

  const SegmentTable table_;
  const std::unique_ptr<const Optimizer> optimizer_;
  std::vector<uint64_t> clocks_;
  CopyStore copies_;
};

TEST_F(CopyStoreTest, AppliesUpdatesOfItsOwnVersionOnlyAndKeepsTheVersionBefore) {
  EXPECT_TRUE(copies_.has(1));
  EXPECT_FALSE(copies_.has(0));
  EXPECT_EQ(Previous(), std::nullopt);
  EXPECT_TRUE(Update(5, 1.0f));
  EXPECT_TRUE(Update(5, 1.0f)) << "a repeat changes nothing";
  EXPECT_TRUE(Update(7, 1.0f)) << "nor does one that overtook another";
  EXPECT_EQ(copies_.version(1), 6u);
  EXPECT_EQ(Weight(), -1.0f);
  EXPECT_EQ(Previous(), 0.0f);
  EXPECT_TRUE(Update(6, 2.0f));
  EXPECT_EQ(Weight(), -3.0f);
  EXPECT_EQ(Previous(), -1.0f);
  EXPECT_EQ(copies_.Held(1)->norm.sum_of_squares, 6.0);
}

TEST_F(CopyStoreTest, ASkippedUpdateMakesAVersionOfTheSameWeights) {
  Update(5, 1.0f);
  EXPECT_TRUE(Update(6, std::nullopt));
  EXPECT_EQ(copies_.version(1), 7u);
  EXPECT_EQ(Weight(), -1.0f);
  EXPECT_EQ(Previous(), -1.0f);
}

TEST_F(CopyStoreTest, TakesAnythingUntilItFollowsAndThenNothingOld) {
  copies_.Forget();
  EXPECT_EQ(copies_.version(1), kNoVersion);
  EXPECT_FALSE(copies_.Held(1).has_value());
  EXPECT_TRUE(Update(5, 1.0f));
  EXPECT_EQ(copies_.version(1), kNoVersion) << "of no weights no others can be made";
  EXPECT_TRUE(Copy(8, 3.0f, 2.0f));
  EXPECT_EQ(copies_.version(1), 8u);
  EXPECT_EQ(Previous(), 2.0f);
  EXPECT_TRUE(Update(8, 1.0f));
  EXPECT_TRUE(Copy(8, 3.0f, 2.0f)) << "it was on its way for long";
  EXPECT_EQ(copies_.version(1), 9u);
  EXPECT_EQ(Weight(), 2.0f);
}

// A replica that is ahead applied an update that its owner could no longer apply.
TEST_F(CopyStoreTest, GoesBackToWhatItsOwnerHas) {
  copies_.Set(1, {.version = 9,
                  .weights = std::vector<float>(kElements, 1.0f),
                  .m = {},
                  .v = {},
                  .previous = {},
                  .clocks = {},
                  .norm = {}});
  EXPECT_TRUE(Copy(8, 3.0f));
  EXPECT_EQ(copies_.version(1), 8u);
  EXPECT_EQ(Weight(), 3.0f);
  EXPECT_EQ(Previous(), std::nullopt);
}

TEST_F(CopyStoreTest, RefusesPayloadsOfOtherShapes) {
  const std::vector<std::byte> garbage(64 + 4 * (kElements - 1));
  EXPECT_FALSE(copies_.OnUpdate(1, 5, 0, garbage));
  EXPECT_FALSE(copies_.OnUpdate(1, 5, 0, std::span(garbage).first(8)));
  EXPECT_FALSE(copies_.OnCopy(1, 5, garbage));
  EXPECT_FALSE(copies_.OnCopy(1, 5, {}));
  EXPECT_EQ(copies_.version(1), 5u);
}

class UpdateCopyStoreTest : public CopyStoreTest {
 protected:
  UpdateCopyStoreTest() : CopyStoreTest({.start_version = 1, .counted_clocks = 2}) {}
};

TEST_F(UpdateCopyStoreTest, CountsThePushesOfEachVirtualWorker) {
  EXPECT_EQ(copies_.version(1), 2u);
  EXPECT_TRUE(Update(2, 1.0f, 1));
  EXPECT_TRUE(Update(3, 1.0f, 1));
  EXPECT_FALSE(Update(4, 1.0f, 2)) << "there is no such virtual worker";
  const HeldSegment held = *copies_.Held(1);
  EXPECT_EQ(std::vector<uint64_t>(held.clocks.begin(), held.clocks.end()),
            (std::vector<uint64_t>{1, 3}));
  EXPECT_TRUE(held.previous.empty());
  clocks_ = {4, 5};
  EXPECT_TRUE(Copy(7, 2.0f));
  EXPECT_EQ(copies_.version(1), 7u);
  EXPECT_EQ(copies_.Held(1)->clocks[1], 5u);
}

}  // namespace
}  // namespace tug
