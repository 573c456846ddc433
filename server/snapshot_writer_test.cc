// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "base/files/test_folder.h"

namespace tug {
namespace {

using testing::ElementsAre;

constexpr uint64_t kElements = 1024;

// Two segments of one block, on one lane; the optimizer keeps nothing.
class SnapshotWriterTest : public testing::Test {
 protected:
  SnapshotWriterTest() {
    BlockTable blocks;
    BlockSpec& block = *blocks.add_blocks();
    block.set_name("only");
    block.add_tensors()->add_shape(2 * kElements);
    table_ = *SegmentTable::Create(blocks, kElements);
    writer_.emplace(SnapshotWriter::Options{.run_dir = run_, .block_names = {"only"}}, table_);
    writer_->SetPlace({.segments = 2});
  }

  void Add(uint32_t segment, uint64_t version) {
    const auto weights = std::make_shared<std::vector<float>>(kElements, 0.5f);
    writer_->Add({.segment = segment,
                  .version = version,
                  .weights = Lease(weights, std::span<const float>(*weights))});
  }
  // Versions of the reported parts; waits until there are `count`.
  std::vector<uint64_t> Parts(size_t count) {
    while (writer_->parts().size() < count) std::this_thread::yield();
    std::vector<uint64_t> versions;
    for (const CheckpointPart& part : writer_->parts()) {
      EXPECT_EQ(part.error(), "");
      versions.push_back(part.version());
    }
    return versions;
  }

  const TestFolder folder_;
  const std::string& run_ = folder_.path();
  SegmentTable table_;
  std::optional<SnapshotWriter> writer_;
};

TEST_F(SnapshotWriterTest, WritesACheckpointWhenItHasAllSegmentsWhicheverIsAhead) {
  Add(0, 1);
  Add(0, 2);
  Add(1, 1);
  Add(1, 2);
  Add(1, 3);
  Add(0, 3);
  EXPECT_THAT(Parts(3), ElementsAre(1, 2, 3));
}

TEST_F(SnapshotWriterTest, TakesEachSegmentOnce) {
  Add(0, 1);
  Add(0, 1);
  EXPECT_TRUE(writer_->parts().empty());
  Add(1, 1);
  EXPECT_THAT(Parts(1), ElementsAre(1));
}

TEST_F(SnapshotWriterTest, GivesUpTheOldestOfASegmentThatRunsFarAhead) {
  for (uint64_t version = 1; version <= 10; ++version) Add(0, version);
  Add(1, 1);
  Add(1, 6);
  for (const uint64_t version : {7, 8, 9, 10}) Add(1, version);
  EXPECT_THAT(Parts(4), ElementsAre(7, 8, 9, 10));
}

TEST_F(SnapshotWriterTest, BeginsAnewWhenSegmentsMove) {
  Add(0, 1);
  Add(1, 1);
  Parts(1);
  Add(0, 2);
  writer_->SetPlace(
      {.timeline = 2, .placement = 5, .first = false, .lane_index = 3, .segments = 1});
  EXPECT_TRUE(writer_->parts().empty()) << "void by now";
  Add(1, 2);
  EXPECT_THAT(Parts(1), ElementsAre(2));
  const CheckpointPart part = writer_->parts()[0];
  EXPECT_EQ(part.placement(), 5u);
  EXPECT_EQ(part.lane(), 3u);
  EXPECT_EQ(part.file(), "lane-003-timeline-2-placement-5.safetensors");
}

}  // namespace
}  // namespace tug
