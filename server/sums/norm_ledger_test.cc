// SPDX-License-Identifier: Apache-2.0
#include "server/sums/norm_ledger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tug {
namespace {

SegmentTable Table(uint64_t segment_elements) {
  BlockTable blocks;
  for (int b = 0; b < 3; ++b) {
    BlockSpec* block = blocks.add_blocks();
    TensorSpec* matrix = block->add_tensors();
    matrix->add_shape(20000 + 5000 * b);
    matrix->set_weight_decay(true);
    block->add_tensors()->add_shape(100);
  }
  return *SegmentTable::Create(blocks, segment_elements);
}

std::span<const std::byte> Bytes(const std::vector<NormEntry>& entries) {
  return std::as_bytes(std::span(entries));
}

// Three lanes; segments are assigned in rotation.
class NormLedgerTest : public testing::Test {
 protected:
  NormLedgerTest() : table_(Table(4096)) {
    for (uint32_t id = 0; id < table_.size(); ++id) lanes_.push_back(id % 3);
  }
  NormLedger Ledger(uint32_t lane, NormLedger::Scope scope) {
    return NormLedger(table_, lanes_, lane, scope, 7);
  }
  static double ValueOf(uint32_t id) { return std::exp(0.1 * id) / 3; }

  SegmentTable table_;
  std::vector<uint32_t> lanes_;
};

TEST_F(NormLedgerTest, LanesReachSameBitsForAnyOrder) {
  constexpr uint32_t kAll = NormLedger::kAllBlocks;
  std::vector<NormLedger> ledgers;
  for (uint32_t lane = 0; lane < 3; ++lane) {
    ledgers.push_back(Ledger(lane, NormLedger::Scope::kAll));
  }
  for (uint32_t lane = 0; lane < 3; ++lane) {
    bool last = false;
    for (uint32_t id : ledgers[lane].OwnSegments(kAll)) {
      EXPECT_FALSE(last);
      last = ledgers[lane].AddOwn(id, {ValueOf(id), NormEntry::kAllFinite, 0});
    }
    EXPECT_TRUE(last);
    EXPECT_TRUE(ledgers[lane].Waiting(kAll));
  }
  std::vector<double> sums;
  for (uint32_t lane = 0; lane < 3; ++lane) {
    for (uint32_t step = 1; step <= 2; ++step) {
      const uint32_t from = (lane + step) % 3;
      const std::vector<NormEntry> entries = *ledgers[from].OwnEntries(kAll, 7);
      EXPECT_TRUE(ledgers[lane].AddRemote(kAll, from, 7, Bytes(entries)));
      EXPECT_TRUE(ledgers[lane].AddRemote(kAll, from, 7, Bytes(entries)));  // a repeat
    }
    ASSERT_TRUE(ledgers[lane].complete(kAll));
    sums.push_back(ledgers[lane].Fold(kAll).sum_of_squares);
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
}

TEST_F(NormLedgerTest, NamesTheFirstBlockThatIsNotFinite) {
  NormLedger ledger(table_, std::vector<uint32_t>(table_.size(), 0), 0, NormLedger::Scope::kAll, 0);
  for (uint32_t id = 0; id < table_.size(); ++id) {
    NormEntry entry{1.0, NormEntry::kAllFinite, 0};
    if (table_.segment(id).block >= 1) {
      entry = {std::numeric_limits<double>::infinity(), 5 + table_.segment(id).block, 0};
    }
    ledger.AddOwn(id, entry);
  }
  const NormVerdict verdict = ledger.Fold(NormLedger::kAllBlocks);
  EXPECT_FALSE(verdict.finite);
  EXPECT_EQ(verdict.bad_block, 1u);
  EXPECT_EQ(verdict.bad_virtual_worker, 6u);
}

TEST_F(NormLedgerTest, KeepsThePreviousClockForAPeerThatAsksAgain) {
  NormLedger ledger(table_, std::vector<uint32_t>(table_.size(), 0), 0, NormLedger::Scope::kBlock,
                    7);
  for (uint32_t id = table_.first_of_block(1); id < table_.first_of_block(2); ++id) {
    ledger.AddOwn(id, {2.0, NormEntry::kAllFinite, 0});
  }
  ASSERT_TRUE(ledger.complete(1));
  ledger.Advance(1);
  EXPECT_EQ(ledger.clock(1), 8u);
  EXPECT_EQ(ledger.OwnEntries(1, 7)->size(), table_.segments_in_block(1));
  EXPECT_FALSE(ledger.OwnEntries(1, 8).has_value());
  EXPECT_FALSE(ledger.OwnEntries(1, 6).has_value());
}

TEST_F(NormLedgerTest, RefusesWhatMakesNoSense) {
  NormLedger ledger = Ledger(0, NormLedger::Scope::kAll);
  const std::vector<NormEntry> entries(ledger.OwnSegments(NormLedger::kAllBlocks).size());
  EXPECT_FALSE(ledger.AddRemote(2, 1, 7, Bytes(entries)));                        // no such scope
  EXPECT_FALSE(ledger.AddRemote(NormLedger::kAllBlocks, 0, 7, Bytes(entries)));   // the lane itself
  EXPECT_FALSE(ledger.AddRemote(NormLedger::kAllBlocks, 99, 7, Bytes(entries)));  // no such lane
  EXPECT_FALSE(ledger.AddRemote(NormLedger::kAllBlocks, 1, 9, Bytes(entries)));   // a future clock
  EXPECT_FALSE(ledger.AddRemote(NormLedger::kAllBlocks, 1, 7, Bytes(entries).first(8)));
  EXPECT_TRUE(ledger.AddRemote(NormLedger::kAllBlocks, 1, 6, {}));  // a repeat for a closed clock
}

// Lane 0 inherits segments, one of which has closed the clock that the others have open.
TEST_F(NormLedgerTest, TakesUpSegmentsOfTwoVersions) {
  constexpr uint32_t kAll = NormLedger::kAllBlocks;
  NormLedger whole = Ledger(0, NormLedger::Scope::kAll);
  NormLedger taken = Ledger(0, NormLedger::Scope::kAll);
  std::vector<NormLedger::OwnSegment> own;
  for (const uint32_t id : whole.OwnSegments(kAll)) {
    const bool further = own.size() == 1;
    own.push_back({id, further ? 10u : 9u, {further ? ValueOf(id) : -1.0}});
  }
  ASSERT_GT(own.size(), 2u);
  ASSERT_TRUE(taken.RecoverState(own, 7));
  EXPECT_EQ(taken.clock(kAll), 9u);
  EXPECT_FALSE(taken.OwnEntries(kAll, 8).has_value()) << "nobody can lack them";
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_FALSE(taken.OwnEntries(kAll, 9).has_value());
    if (i != 1) taken.AddOwn(own[i].id, {ValueOf(own[i].id)});
    whole.AddOwn(own[i].id, {ValueOf(own[i].id)});
  }
  EXPECT_EQ(taken.OwnEntries(kAll, 9), whole.OwnEntries(kAll, 7));
}

// Lane 1 is ahead of lane 0 in all segments: it still supplies what lane 0 lacks.
TEST_F(NormLedgerTest, SuppliesTheClockBeforeOfWhatItTookUp) {
  constexpr uint32_t kBlock = 1;
  NormLedger ledger = Ledger(1, NormLedger::Scope::kBlock);
  std::vector<NormLedger::OwnSegment> own;
  std::vector<NormEntry> expected;
  for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
    for (const uint32_t id : ledger.OwnSegments(block)) {
      own.push_back({id, 9, {ValueOf(id)}});
      if (block == kBlock) expected.push_back({ValueOf(id)});
    }
  }
  ASSERT_TRUE(ledger.RecoverState(own, 7));
  EXPECT_EQ(ledger.clock(kBlock), 9u);
  EXPECT_EQ(ledger.OwnEntries(kBlock, 8), expected);
  EXPECT_FALSE(ledger.OwnEntries(kBlock, 9).has_value());
  own.back().version = 11;
  EXPECT_FALSE(Ledger(1, NormLedger::Scope::kBlock).RecoverState(own, 7)) << "too far apart";
}

}  // namespace
}  // namespace tug
