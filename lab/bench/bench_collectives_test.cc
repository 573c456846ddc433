// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_collectives.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const CollectivesArguments& arguments) {
  return std::string(CollectivesCases(arguments).status().message());
}

TEST(BenchCollectives, ACaseIsATransportAndANumberOfRanks) {
  CollectivesArguments arguments;
  arguments.ranks = {2, 4};
  arguments.sizes = {"4K", "128M"};
  const auto cases = CollectivesCases(arguments);
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 4u);
  EXPECT_EQ((*cases)[3].setting.world, 4u);
  EXPECT_TRUE((*cases)[3].setting.shared_memory);
  EXPECT_THAT((*cases)[3].sizes, ElementsAre(4096, 134217728));
  EXPECT_EQ((*cases)[3].setting.max_size_bytes, 134217728u);
}

TEST(BenchCollectives, HostsAreReachedOverTcp) {
  CollectivesArguments arguments;
  arguments.hosts = {"one", "two"};
  const auto cases = CollectivesCases(arguments);
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 1u);
  EXPECT_EQ((*cases)[0].transport, "tcp");
}

TEST(BenchCollectives, NamesTheOptionThatIsWrong) {
  CollectivesArguments arguments;
  arguments.algorithms = {"circle"};
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("--algorithm circle"));
  arguments = {};
  arguments.sizes = {"5"};
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("--bytes 5"));
  arguments = {};
  arguments.sizes = {"1.5M"};
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("--bytes: '1.5M'"));
  arguments = {};
  arguments.ranks = {0};
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("--ranks 0"));
  arguments.ranks = {1};
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("--ranks 1 is out of range: give 2 to 64"));
  arguments = {};
  arguments.transports = {"pigeon"};
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("--transport pigeon"));
  arguments = {};
  arguments.hosts = {"one", "two"};
  arguments.transports = {"shm"};
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("--hosts"));
  arguments = {};
  arguments.type = "int8";
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("--type int8"));
}

}  // namespace
}  // namespace tug
