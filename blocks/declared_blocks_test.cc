// SPDX-License-Identifier: Apache-2.0
#include "blocks/declared_blocks.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

BlockSpec Block(const std::string& name, uint64_t elements, float mean = 0, float std = 0) {
  BlockSpec block;
  block.set_name(name);
  TensorSpec* tensor = block.add_tensors();
  tensor->set_name(name);
  tensor->add_shape(elements);
  tensor->set_init_mean(mean);
  tensor->set_init_std(std);
  return block;
}

BlockTable Table(const std::vector<BlockSpec>& blocks) {
  BlockTable table;
  for (const BlockSpec& block : blocks) *table.add_blocks() = block;
  return table;
}

std::string ErrorOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  return std::string(status.message());
}

TEST(DeclaredBlocks, TakesWhatCanBeExchanged) {
  EXPECT_TRUE(CheckDeclaredBlock(Block("encoder/h.0_w-1", 7, 1, 0.02f)).ok());
  EXPECT_TRUE(CheckDeclaredBlocks(Table({Block("a", 1), Block("b", 1 << 20)}), 1024).ok());
}

TEST(DeclaredBlocks, RefusesABlockAndNamesIt) {
  EXPECT_THAT(ErrorOf(CheckDeclaredBlock(Block("", 1))), HasSubstr("not a block's name"));
  EXPECT_THAT(ErrorOf(CheckDeclaredBlock(Block("a\nb", 1))), HasSubstr("'a?b'"));
  EXPECT_THAT(ErrorOf(CheckDeclaredBlock(Block(std::string(129, 'x'), 1))), HasSubstr("1..128"));
  EXPECT_THAT(ErrorOf(CheckDeclaredBlock(Block("a", 0))), HasSubstr("'a' has no elements"));
  EXPECT_THAT(ErrorOf(CheckDeclaredBlock(Block("a", UINT64_MAX))), HasSubstr("'a' has too many"));
  EXPECT_THAT(ErrorOf(CheckDeclaredBlock(Block("a", 1, NAN))),
              HasSubstr("'a' has initial weights nan"));
  EXPECT_THAT(ErrorOf(CheckDeclaredBlock(Block("a", 1, 0, -1))), HasSubstr("deviation >= 0"));
  BlockSpec product = Block("a", 1);
  for (int i = 0; i < 5; ++i) product.mutable_tensors(0)->add_shape(1 << 20);
  EXPECT_THAT(ErrorOf(CheckDeclaredBlock(product)), HasSubstr("too many"));
}

TEST(DeclaredBlocks, RefusesATable) {
  EXPECT_THAT(ErrorOf(CheckDeclaredBlocks({}, 1024)), HasSubstr("no blocks"));
  EXPECT_THAT(ErrorOf(CheckDeclaredBlocks(Table({Block("a", 1), Block("a", 2)}), 1024)),
              HasSubstr("'a' is declared twice"));
  EXPECT_THAT(ErrorOf(CheckDeclaredBlocks(Table({Block("a", kMaxDeclaredElements)}), 1024)),
              HasSubstr("raise comm.segment_elements"));
  BlockTable many;
  for (int i = 0; i <= kMaxDeclaredBlocks; ++i) *many.add_blocks() = Block(std::to_string(i), 1);
  EXPECT_THAT(ErrorOf(CheckDeclaredBlocks(many, 1024)), HasSubstr("several tensors into one"));
}

TEST(DeclaredBlocks, NamesTheFirstDifference) {
  const BlockTable one = Table({Block("a", 1), Block("b", 2)});
  EXPECT_EQ(FirstBlockDifference(one, one), "");
  EXPECT_THAT(FirstBlockDifference(one, Table({Block("a", 1), Block("b", 3)})),
              HasSubstr("block 1 is 'b' of 2 elements (initially 0 +- 0) here, 'b' of 3 elements"));
  EXPECT_THAT(FirstBlockDifference(one, Table({Block("a", 1)})), HasSubstr("missing there"));
  EXPECT_THAT(FirstBlockDifference(one, Table({Block("a", 1, 0.5f), Block("b", 2)})),
              HasSubstr("(initially 0.5 +- 0) there"));
}

}  // namespace
}  // namespace tug
