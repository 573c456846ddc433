// SPDX-License-Identifier: Apache-2.0
// Scenarios that seeds draw.

#include "lab/simulate/scenario.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tug {
namespace {

TEST(Scenario, SeedsDrawAllThatARunCanHave) {
  std::set<uint64_t> parking;
  std::set<uint32_t> resend_ms;
  std::set<int> codecs, loses, policies;
  std::set<FaultKind> faults;
  double max_loss = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Scenario scenario = MakeScenario(seed);
    const SimulationOptions& options = scenario.options;
    parking.insert(options.parking_bytes);
    resend_ms.insert(options.config.comm().resend_ms());
    codecs.insert(options.config.comm().push_codec().codec_case());
    policies.insert(options.config.sync().policy());
    max_loss = std::max(max_loss, options.network.drop_probability);
    for (const FaultEvent& fault : options.faults) {
      faults.insert(fault.kind);
      if (fault.kind == FaultKind::kLoseKind) loses.insert(static_cast<int>(fault.loses));
    }
  }
  EXPECT_EQ(parking, (std::set<uint64_t>{0, 1024, 2048, kServerParkingBytes}));
  EXPECT_EQ(resend_ms, (std::set<uint32_t>{20, 50, 200}));
  EXPECT_EQ(codecs.size(), 9u);  // including none
  EXPECT_EQ(policies.size(), 4u);
  EXPECT_EQ(faults.size(), kFaultKinds);
  EXPECT_EQ(loses.size(), 16u);
  EXPECT_DOUBLE_EQ(max_loss, 0.1);
}

TEST(Scenario, SomeJobsReduceAmongServersOverANetworkThatLosesNothing) {
  std::set<int> algorithms, formats;
  std::set<uint32_t> servers;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Scenario scenario = MakeScenario(seed);
    const JobConfig& job = scenario.options.config;
    if (job.exchange() != JobConfig::ALL_REDUCE) continue;
    algorithms.insert(job.collective().algorithm());
    formats.insert(job.collective().format());
    servers.insert(job.cluster().servers());
    EXPECT_EQ(job.cluster().servers(), job.cluster().workers());
    EXPECT_EQ(scenario.undisturbed.config.cluster().workers(), job.cluster().workers());
    EXPECT_EQ(scenario.options.network.drop_probability, 0);
    EXPECT_TRUE(scenario.same_bits);
  }
  EXPECT_EQ(algorithms.size(), 5u);
  EXPECT_EQ(formats.size(), 3u);
  EXPECT_EQ(servers, (std::set<uint32_t>{1, 2, 3, 4}));
}

TEST(Scenario, AConjunctionIsOfEverySeed) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Scenario frames = MakeScenario(seed, Conjunction::kFramesWithoutMemory);
    EXPECT_NE(frames.options.config.comm().push_codec().codec_case(), 0);
    EXPECT_LE(frames.options.parking_bytes, 1024u);
    EXPECT_TRUE(MakeScenario(seed, Conjunction::kStopWhileGoingBack).stops);
    EXPECT_DOUBLE_EQ(MakeScenario(seed, Conjunction::kLossy).options.network.drop_probability, 0.1);
  }
}

}  // namespace
}  // namespace tug
