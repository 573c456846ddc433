// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/exchange_case.h"

#include <string>
#include <vector>

#include "config/job_config.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

std::optional<ExchangeCase> CaseOf(std::vector<std::string> settings) {
  settings.push_back("cluster.workers=4");
  const auto config =
      ParseJobConfig("name: \"a\" compute: REPLAY replay { profile: \"vgg16\" }", "a", settings);
  EXPECT_TRUE(config.ok()) << config.status();
  return ExchangeCaseOf(config.value_or(JobConfig()));
}

// Servers are assigned to hosts first, then workers.
TEST(ExchangeCase, IsOfAJobAndDealsItsNodesToAsManyHostsAsItSays) {
  struct Expected {
    std::vector<std::string> settings;
    ExchangeKind kind;
    uint32_t count, servers, hosts;
    bool beside;
  };
  const std::vector<Expected> all = {
      {{"cluster.servers=3"}, ExchangeKind::kServers, 3, 3, 7, false},
      {{"placement.kind=MIXED", "cluster.servers=6"}, ExchangeKind::kMixed, 2, 6, 6, true},
      {{"exchange=ALL_REDUCE", "collective.algorithm=RING"}, ExchangeKind::kRing, 0, 4, 4, true},
      {{"exchange=ALL_REDUCE", "collective.algorithm=HALVING_DOUBLING"},
       ExchangeKind::kHalvingDoubling,
       0,
       4,
       4,
       true},
      {{"placement.kind=ZERO1"}, ExchangeKind::kZero1, 0, 4, 4, true},
      {{"placement.kind=ZERO2"}, ExchangeKind::kZero2, 0, 4, 4, true},
      {{"placement.kind=ZERO3"}, ExchangeKind::kZero3, 0, 4, 4, true}};
  for (const Expected& expected : all) {
    const std::string& name = expected.settings.front();
    const auto found = CaseOf(expected.settings);
    ASSERT_TRUE(found.has_value()) << name;
    EXPECT_EQ(found->kind, expected.kind) << name;
    EXPECT_EQ(found->count, expected.count) << name;
    EXPECT_EQ(found->Hosts(4), expected.hosts) << name;
    EXPECT_EQ(found->IsPairedWithWorkers(), expected.beside) << name;
    for (uint32_t host = 0; host < expected.hosts; ++host) {
      bool has_worker = false;
      for (uint32_t worker = 0; worker < 4; ++worker) {
        has_worker |= (expected.servers + worker) % expected.hosts == host;
      }
      EXPECT_EQ(found->HasServerAlone(host, 4), !has_worker) << name << " " << host;
    }
  }
}

TEST(ExchangeCase, IsNoneWhereThereIsNoFormula) {
  EXPECT_FALSE(CaseOf({"exchange=ALL_REDUCE"}).has_value()) << "by the size of a segment";
  EXPECT_FALSE(CaseOf({"exchange=ALL_REDUCE", "collective.algorithm=BINARY_TREE"}).has_value());
  EXPECT_FALSE(CaseOf({"placement.kind=MIXED", "cluster.servers=4"}).has_value())
      << "no host without a worker";
}

}  // namespace
}  // namespace tug
