// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_push_pull.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const PushPullArguments& arguments) {
  return std::string(PushPullCases(arguments).status().message());
}

TEST(PushPullCases, FillsTheLinkByDefault) {
  const auto cases = PushPullCases({.sizes = {"4K", "4M"}, .ops = {"pull"}});
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 2u);
  EXPECT_EQ((*cases)[0].load.outstanding, 64u);
  EXPECT_EQ((*cases)[0].setting.blocks, 1024u);
  EXPECT_EQ((*cases)[1].load.outstanding, 8u);
  EXPECT_EQ((*cases)[1].setting.blocks, 8u);
  EXPECT_EQ((*cases)[1].ops, std::vector<BenchOp>{BenchOp::kPull});
}

TEST(PushPullCases, HasABlockForEveryLaneAndEveryStepOnItsWay) {
  EXPECT_EQ((*PushPullCases({.sizes = {"64M"}, .servers = 3, .lanes = 2}))[0].setting.blocks, 6u);
  EXPECT_EQ((*PushPullCases({.sizes = {"64M"}, .outstanding = 9}))[0].setting.blocks, 9u);
  EXPECT_EQ((*PushPullCases({.sizes = {"1M"}, .total = "128M"}))[0].setting.blocks, 128u);
}

TEST(PushPullCases, NamesTheWrongOption) {
  EXPECT_THAT(ErrorOf({.sizes = {"5000"}}), HasSubstr("--bytes 5000"));
  EXPECT_THAT(ErrorOf({.sizes = {"4X"}}), HasSubstr("'4X'"));
  EXPECT_THAT(ErrorOf({.ops = {"pushpull"}}), HasSubstr("--op pushpull"));
  EXPECT_THAT(ErrorOf({.servers = 0}), HasSubstr("--servers"));
  EXPECT_THAT(ErrorOf({.transports = {"pigeon"}}), HasSubstr("--transport pigeon"));
  EXPECT_THAT(ErrorOf({.transports = {"shm"}, .hosts = {"a", "b"}}), HasSubstr("--hosts"));
  EXPECT_THAT(ErrorOf({.runs = 0}), HasSubstr("--runs"));
  EXPECT_THAT(ErrorOf({.checksum = "maybe"}), HasSubstr("--checksum maybe"));
  EXPECT_THAT(ErrorOf({.format = "fp8"}), HasSubstr("--format fp8"));
  EXPECT_THAT(ErrorOf({.through = "magic"}), HasSubstr("--through magic"));
  EXPECT_THAT(ErrorOf({.limits = "no"}), HasSubstr("--limits no"));
  EXPECT_THAT(ErrorOf({.hosts = {"a"}}), HasSubstr("--hosts"));
}

TEST(MakeBenchView, PutsBlocksOnLanesInTurn) {
  BenchSetting setting;
  setting.servers = 2;
  setting.bytes = 4 << 20;  // four segments
  setting.blocks = 3;
  const View view = MakeBenchView(setting, {"a", "b"});
  ASSERT_EQ(view.lanes_size(), 2);
  EXPECT_EQ(view.lanes(1).endpoint(), "b");
  EXPECT_EQ(view.lanes(1).server_node_id(), 2u);
  EXPECT_THAT(view.lane_of_segment(), testing::ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0));
}

}  // namespace
}  // namespace tug
