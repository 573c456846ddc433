// SPDX-License-Identifier: Apache-2.0
#include "blocks/codec_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tug {
namespace {

TEST(MatchesNames, TakesAListOfPatterns) {
  EXPECT_TRUE(MatchesNames("*", "h.0"));
  EXPECT_TRUE(MatchesNames("*", ""));
  EXPECT_TRUE(MatchesNames("h.*,head", "h.11"));
  EXPECT_TRUE(MatchesNames("h.*, head", "head"));
  EXPECT_TRUE(MatchesNames("*.a*b", "x.aab.ab"));
  EXPECT_TRUE(MatchesNames("a**", "a"));
  EXPECT_FALSE(MatchesNames("h.*,head", "embedding"));
  EXPECT_FALSE(MatchesNames("h.*", "eh.1"));
  EXPECT_FALSE(MatchesNames("*.a*b", "x.aab.abc"));
  EXPECT_FALSE(MatchesNames("hea", "head"));
  EXPECT_FALSE(MatchesNames("head", "hea"));
}

// Two blocks of a matrix of 96 elements and a vector of 8, cut at 64.
class CodecChoiceTest : public testing::Test {
 protected:
  static SegmentTable Table() {
    BlockTable blocks;
    for (int b = 0; b < 2; ++b) {
      BlockSpec& block = *blocks.add_blocks();
      TensorSpec& matrix = *block.add_tensors();
      matrix.add_shape(96);
      matrix.set_weight_decay(true);
      block.add_tensors()->add_shape(8);
    }
    return *SegmentTable::Create(blocks, 64);
  }
  static PushCodecConfig Bf16() {
    PushCodecConfig config;
    config.mutable_bf16();
    config.set_blocks("*");
    return config;
  }
  // Whether each segment is encoded, by segment id.
  std::vector<bool> Encoded(const PushCodecConfig& config, uint64_t clock = 0) const {
    const CodecChoice choice(config, names_);
    std::vector<bool> encoded;
    for (uint32_t id = 0; id < table_.size(); ++id) {
      encoded.push_back(choice.Of(table_.segment(id), clock) != nullptr);
    }
    return encoded;
  }

  const SegmentTable table_ = Table();
  const std::vector<std::string> names_ = {"embedding", "h.0"};
};

TEST_F(CodecChoiceTest, IsOfMatricesUnlessVectorsAreWanted) {
  EXPECT_EQ(Encoded(Bf16()), (std::vector<bool>{true, true, false, true, true, false}));
  PushCodecConfig config = Bf16();
  config.set_vectors(true);
  EXPECT_EQ(Encoded(config), std::vector<bool>(6, true));
}

TEST_F(CodecChoiceTest, LeavesSmallSegmentsOut) {
  PushCodecConfig config = Bf16();
  config.set_min_elements(33);
  EXPECT_EQ(Encoded(config), (std::vector<bool>{true, false, false, true, false, false}));
}

TEST_F(CodecChoiceTest, IsOfTheBlocksThatAreNamed) {
  PushCodecConfig config = Bf16();
  config.set_blocks("h.*");
  EXPECT_EQ(Encoded(config), (std::vector<bool>{false, false, false, true, true, false}));
  const CodecChoice choice(config, names_);
  EXPECT_FALSE(choice.Encodes(table_, 0));
  EXPECT_TRUE(choice.Encodes(table_, 1));
}

TEST_F(CodecChoiceTest, WaitsForTheWarmupToEnd) {
  PushCodecConfig config = Bf16();
  config.set_warmup_steps(3);
  EXPECT_EQ(Encoded(config, 2), std::vector<bool>(6, false));
  EXPECT_EQ(Encoded(config, 3), Encoded(Bf16()));
  EXPECT_TRUE(CodecChoice(config, names_).Encodes(table_, 0)) << "later on";
}

TEST_F(CodecChoiceTest, NoCodecEncodesNothing) {
  PushCodecConfig config;
  config.set_blocks("*");
  config.set_vectors(true);
  EXPECT_EQ(Encoded(config), std::vector<bool>(6, false));
  EXPECT_EQ(CodecChoice(config, {}).id(), 0);
}

}  // namespace
}  // namespace tug
