// SPDX-License-Identifier: Apache-2.0
#include "model/replay/replay_profile.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/layout.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ReplayProfile Shipped(const std::string& name) {
  const auto profile = LoadReplayProfile(name);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.value_or(ReplayProfile());
}

// Error for a file with this text.
std::string ErrorOf(const std::string& text) {
  const std::string path = testing::TempDir() + "/profile.textproto";
  std::ofstream(path) << text;
  const absl::Status status = LoadReplayProfile(path).status();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("profile.textproto"), Not(HasSubstr("\n"))));
  return std::string(status.message());
}

ReplayProfile Small() {
  ReplayProfile profile;
  profile.set_name("small");
  profile.set_batch(4);
  for (int i = 0; i < 2; ++i) {
    ReplayBlock& block = *profile.add_blocks();
    block.set_name(absl::StrCat("b", i));
    block.set_parameters(10 + 10 * i);
    block.set_forward_ms(1);
    block.set_backward_ms(3);
  }
  return profile;
}

TEST(ShippedReplayProfiles, AreThoseOfTheFolderUnderTheirOwnNames) {
  EXPECT_THAT(ShippedReplayProfiles(), ElementsAre("gpt2_124m", "resnet50", "vgg16"));
  for (const std::string& name : ShippedReplayProfiles()) {
    const ReplayProfile profile = Shipped(name);
    EXPECT_EQ(profile.name(), name);
    EXPECT_THAT(profile.source(), HasSubstr("not measured"));
    EXPECT_NEAR(ReplayBackwardMs(profile), 2 * ReplayForwardMs(profile),
                0.05 * ReplayForwardMs(profile));
  }
}

TEST(ShippedReplayProfiles, Vgg16HasItsParametersMostInOneLateBlock) {
  const ReplayProfile profile = Shipped("vgg16");
  EXPECT_EQ(profile.blocks_size(), 13 + 3);
  EXPECT_EQ(ReplayParameters(profile), 138'357'544u);
  EXPECT_EQ(profile.blocks(13).name(), "fc6");
  EXPECT_EQ(profile.blocks(13).parameters(), 102'764'544u);
  EXPECT_LT(profile.blocks(13).backward_ms(), 0.01 * ReplayBackwardMs(profile));
}

TEST(ShippedReplayProfiles, ResNet50HasItsParameters) {
  const ReplayProfile profile = Shipped("resnet50");
  EXPECT_EQ(profile.blocks_size(), 1 + 16 + 1);
  EXPECT_EQ(ReplayParameters(profile), 25'557'032u);
}

TEST(ShippedReplayProfiles, Gpt2HasTheBlocksOfOurOwnModel) {
  ModelConfig config;
  config.set_layers(12);
  config.set_width(768);
  config.set_heads(12);
  config.set_context(1024);
  config.set_mlp_width(4 * 768);
  config.set_tied_head(true);
  config.set_bias(true);
  config.set_family(ModelConfig::DECODER);
  config.set_norm(ModelConfig::PRE);
  config.set_activation(ModelConfig::GELU);
  const BlockTable model = ModelLayout(config, /*symbols=*/50257, /*classes=*/0);
  const ReplayProfile profile = Shipped("gpt2_124m");
  EXPECT_EQ(ReplayParameters(profile), 124'439'808u);
  ASSERT_EQ(profile.blocks_size(), model.blocks_size());
  for (int i = 0; i < model.blocks_size(); ++i) {
    EXPECT_EQ(profile.blocks(i).name(), model.blocks(i).name());
    EXPECT_EQ(profile.blocks(i).parameters(), ElementCount(model.blocks(i))) << i;
  }
}

TEST(LoadReplayProfile, NamesWhatThereIsWhenNothingIsFound) {
  const absl::Status status = LoadReplayProfile("vgg17").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "replay.profile = \"vgg17\" is neither a file nor one of gpt2_124m, resnet50, vgg16; "
            "set replay.profile to one of these");
}

TEST(LoadReplayProfile, ReadsAFile) {
  const std::string path = testing::TempDir() + "/mine.textproto";
  std::ofstream(path) << "name: 'mine' batch: 3 blocks { name: 'a' parameters: 7 forward_ms: 2 }";
  const auto profile = LoadReplayProfile(path);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->name(), "mine");
  EXPECT_EQ(ReplayParameters(*profile), 7u);
  EXPECT_EQ(ReplayForwardMs(*profile), 2);
}

TEST(LoadReplayProfile, SaysInALineWhatIsWrongWithAFile) {
  EXPECT_THAT(ErrorOf("name: 'x' batch: 1"), HasSubstr("has no blocks"));
  EXPECT_THAT(ErrorOf("batch: 1 blocks { name: 'a' parameters: 1 }"), HasSubstr("name = \"\""));
  EXPECT_THAT(ErrorOf("name: 'x' blocks { name: 'a' parameters: 1 }"), HasSubstr("batch = 0"));
  EXPECT_THAT(ErrorOf("name: 'x' batch: 1 blocks { name: 'a' }"),
              AllOf(HasSubstr("block 'a'"), HasSubstr("parameters = 0")));
  EXPECT_THAT(ErrorOf("name: 'x' batch: 1 blocks { name: 'a' parameters: 1 forward_ms: -2 }"),
              AllOf(HasSubstr("block 'a': forward_ms = -2"), HasSubstr("0..10000 ms")));
  EXPECT_THAT(ErrorOf("name: 'x' batch: 1 blocks { name: 'a' parameters: 1 backward_ms: nan }"),
              HasSubstr("backward_ms = nan"));
  EXPECT_THAT(ErrorOf("name: 'x' batch: 1 blocks { name: 'a' parameters: 1 backward_ms: 20000 }"),
              HasSubstr("backward_ms = 20000"));
  EXPECT_THAT(ErrorOf("name: 'x' blocs { }"), AllOf(HasSubstr(":1:17"), HasSubstr("blocks")));
}

TEST(ScaledReplayProfile, MultipliesTimesAndSizesAndKeepsAParameter) {
  const ReplayProfile scaled = ScaledReplayProfile(Small(), 0.5, 0.04);
  EXPECT_EQ(scaled.blocks(0).parameters(), 1u);  // 0.4, raised to 1
  EXPECT_EQ(scaled.blocks(1).parameters(), 1u);  // rounded from 0.8
  EXPECT_EQ(ReplayForwardMs(scaled), 1);
  EXPECT_EQ(ReplayBackwardMs(scaled), 3);
  EXPECT_EQ(ReplayParameters(ScaledReplayProfile(Small(), 0, 1000)), 30'000u);
  EXPECT_EQ(ReplayForwardMs(ScaledReplayProfile(Small(), 0, 1000)), 0);
}

TEST(ReplayLayout, HasAVectorABlock) {
  const BlockTable table = ReplayLayout(Small());
  ASSERT_EQ(table.blocks_size(), 2);
  EXPECT_EQ(table.blocks(1).name(), "b1");
  EXPECT_EQ(ElementCount(table.blocks(1)), 20u);
}

TEST(ReplayText, SaysThatItIsAReplayAndHowItIsScaled) {
  ReplayConfig replay;
  replay.set_time_scale(0.5);
  replay.set_size_scale(1);
  *replay.mutable_resolved_profile() = ScaledReplayProfile(Small(), 0.5, 1);
  EXPECT_EQ(ReplayText(replay),
            "replay of small, times x 0.5: 30 parameters in 2 blocks, 1.0 ms forward and 3.0 ms "
            "backward per step; workers sleep, no model is trained");
}

}  // namespace
}  // namespace tug
