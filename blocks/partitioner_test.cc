// SPDX-License-Identifier: Apache-2.0
#include "blocks/partitioner.h"

#include <gtest/gtest.h>

#include <random>

namespace tug {
namespace {

SegmentTable Table() {
  BlockTable blocks;
  TensorSpec* first = blocks.add_blocks()->add_tensors();
  first->add_shape(10 * 4096 + 5);
  BlockSpec* second = blocks.add_blocks();
  second->add_tensors()->add_shape(3 * 4096);
  second->mutable_tensors(0)->set_weight_decay(true);
  second->add_tensors()->add_shape(100);
  return *SegmentTable::Create(blocks, 4096);
}

TEST(SegmentTable, CutsGroupsApartWithTheLastSegmentOfAGroupShort) {
  const SegmentTable table = Table();
  EXPECT_EQ(table.size(), 15u);
  EXPECT_EQ(table.segments_in_block(0), 11u);
  EXPECT_EQ(table.segment(10).elements(), 5u);
  EXPECT_TRUE(table.segment(13).weight_decay);
  EXPECT_FALSE(table.segment(14).weight_decay);
  EXPECT_EQ(table.segment(14).begin, 3u * 4096);
  EXPECT_EQ(table.block_elements(1), 3u * 4096 + 100);
}

TEST(SegmentTable, RefusesWhatCannotBeCut) {
  BlockTable blocks;
  EXPECT_FALSE(SegmentTable::Create(blocks, 4096).ok());
  blocks.add_blocks()->set_name("empty");
  EXPECT_FALSE(SegmentTable::Create(blocks, 4096).ok());
  blocks.mutable_blocks(0)->add_tensors()->add_shape(8);
  EXPECT_TRUE(SegmentTable::Create(blocks, 4096).ok());
  EXPECT_FALSE(SegmentTable::Create(blocks, 4095).ok());
  TensorSpec* late = blocks.mutable_blocks(0)->add_tensors();
  late->add_shape(8);
  late->set_weight_decay(true);
  EXPECT_FALSE(SegmentTable::Create(blocks, 4096).ok());
}

TEST(CutBlock, JoinsNeighboursOfOneLaneUpToTheBound) {
  const SegmentTable table = Table();
  const std::vector<uint32_t> one_lane(table.size(), 0);
  const std::vector<Partition> parts = CutBlock(table, 0, one_lane, 4 * 4096 * sizeof(float));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].segment_count, 4u);
  EXPECT_EQ(parts[1].first_segment, 4u);
  EXPECT_EQ(parts[2].segment_count, 3u);
  EXPECT_EQ(parts[2].end, table.block_elements(0));
}

TEST(CutBlock, NeverSplitsASegmentHoweverSmallTheBound) {
  const SegmentTable table = Table();
  const std::vector<uint32_t> one_lane(table.size(), 0);
  EXPECT_EQ(CutBlock(table, 0, one_lane, 1).size(), 11u);
}

TEST(CutBlock, CoversEverySegmentOnceOnItsOwnLane) {
  const SegmentTable table = Table();
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<uint32_t> lanes(table.size());
    for (uint32_t& lane : lanes) lane = random() % 3;
    for (uint32_t block = 0; block < table.num_blocks(); ++block) {
      uint32_t next = 0;
      uint64_t position = 0;
      for (const Partition& p : CutBlock(table, block, lanes, random() % 100000)) {
        EXPECT_EQ(p.first_segment, next);
        EXPECT_EQ(p.begin, position);
        for (uint32_t i = 0; i < p.segment_count; ++i) {
          EXPECT_EQ(lanes[table.id(block, next + i)], p.lane);
        }
        next += p.segment_count;
        position = p.end;
      }
      EXPECT_EQ(next, table.segments_in_block(block));
      EXPECT_EQ(position, table.block_elements(block));
    }
  }
}

}  // namespace
}  // namespace tug
