// SPDX-License-Identifier: Apache-2.0
#include "plan/strategy.h"

#include <gtest/gtest.h>

#include "collective/schedules/ring.h"

namespace tug {
namespace {

constexpr LinkCost kLink = {.alpha = 1e-5, .beta = 1e-9, .gamma = 1e-10};
constexpr Strategy kAll[] = {Strategy::kHalvingDoubling, Strategy::kRing,
                             Strategy::kZero1,           Strategy::kZero2,
                             Strategy::kZero3,           Strategy::kParameterServer};

double StateBytesOf(Strategy strategy, const StateBytes& states, double parameters,
                    uint32_t workers) {
  return RowOf(strategy).share(states).Bytes(parameters, workers);
}

Exchange OfModel(double bytes, uint32_t workers) {
  return {.gradient_bytes = bytes, .weight_bytes = bytes, .workers = workers};
}

double Sends(Strategy strategy, const Exchange& exchange) {
  const StepTraffic traffic = RowOf(strategy).traffic(exchange);
  EXPECT_EQ(traffic.sends, traffic.receives);
  return traffic.sends;
}

// The lectures' GPT-3: 350, 350, 700, 700 and 700 GB.
TEST(StateBytes, MixedPrecisionBytesOfGpt3MatchLectures) {
  constexpr double kPsi = 175e9;
  EXPECT_EQ(kMixedPrecision.parameters * kPsi, 350e9);
  EXPECT_EQ(kMixedPrecision.gradients * kPsi, 350e9);
  EXPECT_EQ(kMixedPrecision.master * kPsi, 700e9);
  EXPECT_EQ(kMixedPrecision.first_moment * kPsi, 700e9);
  EXPECT_EQ(kMixedPrecision.second_moment * kPsi, 700e9);
  EXPECT_EQ(kMixedPrecision.Optimizer(), 12);
  EXPECT_EQ(kMixedPrecision.All(), 16);
  EXPECT_EQ(kFullPrecision.All(), 16);
}

TEST(RowOf, FindsEachStrategy) {
  for (const Strategy strategy : kAll) EXPECT_EQ(RowOf(strategy).strategy, strategy);
}

// The lectures' 7.5B model on 64 GPUs: 120, 31.4, 16.6 and 1.9 GB.
TEST(WorkerShare, BytesOfEachStageMatchLecturesFor7Point5BillionOn64Gpus) {
  const auto bytes = [](Strategy strategy) {
    return StateBytesOf(strategy, kMixedPrecision, 7.5e9, 64);
  };
  EXPECT_DOUBLE_EQ(bytes(Strategy::kRing), 120e9);
  EXPECT_DOUBLE_EQ(bytes(Strategy::kZero1), 31.40625e9);
  EXPECT_DOUBLE_EQ(bytes(Strategy::kZero2), 16.640625e9);
  EXPECT_DOUBLE_EQ(bytes(Strategy::kZero3), 1.875e9);
  EXPECT_DOUBLE_EQ(bytes(Strategy::kParameterServer), 30e9);
}

TEST(WorkerShare, SingleWorkerHoldsTheSameInAllStages) {
  for (const Strategy strategy : kAll) {
    if (strategy == Strategy::kParameterServer) continue;
    EXPECT_DOUBLE_EQ(StateBytesOf(strategy, kMixedPrecision, 1e9, 1), 16e9);
    EXPECT_DOUBLE_EQ(StateBytesOf(strategy, kFullPrecision, 1e9, 1), 16e9);
  }
}

TEST(ParameterServerBytes, AreSharedByServersAndHoldWeightsInFp32) {
  EXPECT_DOUBLE_EQ(ParameterServerBytes(kMixedPrecision, 1e9, 1), 12e9);
  EXPECT_DOUBLE_EQ(ParameterServerBytes(kFullPrecision, 1e9, 4), 3e9);
}

// The lectures: 2 (N - 1) / N Psi, about 2 Psi, and 3 Psi with ZeRO-3.
TEST(Traffic, TrafficOfOneMicroBatchMatchesLectures) {
  for (const Strategy strategy : {Strategy::kRing, Strategy::kZero1, Strategy::kZero2}) {
    EXPECT_DOUBLE_EQ(Sends(strategy, OfModel(1e9, 4)), 1.5e9);
    EXPECT_NEAR(Sends(strategy, OfModel(1e9, 100000)), 2e9, 1e5);
    EXPECT_EQ(Sends(strategy, OfModel(1e9, 1)), 0);
    EXPECT_EQ(RowOf(strategy).formula(OfModel(1e9, 4)), "2 (N-1)/N Psi");
  }
  EXPECT_DOUBLE_EQ(Sends(Strategy::kZero3, OfModel(1e9, 4)), 2.25e9);
  EXPECT_NEAR(Sends(Strategy::kZero3, OfModel(1e9, 100000)), 3e9, 1e5);
  EXPECT_EQ(RowOf(Strategy::kZero3).formula(OfModel(1e9, 4)), "3 (N-1)/N Psi");
}

// A worker that keeps no whole gradient or no whole weights exchanges them in each micro-batch.
TEST(Traffic, GrowsWithMicroBatchesWhereGradientsOrWeightsAreDivided) {
  Exchange exchange = OfModel(1e9, 4);
  exchange.micro_batches = 5;
  for (const Strategy strategy : {Strategy::kRing, Strategy::kHalvingDoubling, Strategy::kZero1}) {
    EXPECT_DOUBLE_EQ(Sends(strategy, exchange), 1.5e9);
  }
  EXPECT_DOUBLE_EQ(Sends(Strategy::kZero2, exchange), 6 * 0.75e9);
  EXPECT_DOUBLE_EQ(Sends(Strategy::kZero3, exchange), 15 * 0.75e9);
  EXPECT_EQ(RowOf(Strategy::kZero2).formula(exchange), "(m+1) (N-1)/N Psi");
  EXPECT_EQ(RowOf(Strategy::kZero3).formula(exchange), "3 m (N-1)/N Psi");
  const LinkCost link = {.alpha = 1e-5, .beta = 1e-9, .gamma = 0};
  const double once = RingAllGatherSeconds(link, 4, 1'000'000'000);
  EXPECT_DOUBLE_EQ(RowOf(Strategy::kZero2).seconds(exchange, link), 6 * once);
  EXPECT_DOUBLE_EQ(RowOf(Strategy::kZero3).seconds(exchange, link), 15 * once);
}

TEST(Traffic, CountsGradientsAndWeightsInTheirOwnFormats) {
  const Exchange exchange = {.gradient_bytes = 4e9, .weight_bytes = 2e9, .workers = 4};
  EXPECT_DOUBLE_EQ(Sends(Strategy::kRing, exchange), 0.75 * 8e9);
  EXPECT_DOUBLE_EQ(Sends(Strategy::kZero1, exchange), 0.75 * 6e9);
  EXPECT_DOUBLE_EQ(Sends(Strategy::kZero3, exchange), 0.75 * 8e9);
  const StepTraffic traffic = RowOf(Strategy::kParameterServer).traffic(exchange);
  EXPECT_DOUBLE_EQ(traffic.sends, 4e9);
  EXPECT_DOUBLE_EQ(traffic.receives, 2e9);
}

TEST(Traffic, HalvingDoublingSendsMoreWithoutPowerOfTwo) {
  const auto sends = [](uint32_t workers) {
    return Sends(Strategy::kHalvingDoubling, OfModel(1e9, workers));
  };
  EXPECT_DOUBLE_EQ(sends(8), Sends(Strategy::kRing, OfModel(1e9, 8)));
  EXPECT_DOUBLE_EQ(sends(9), 1.75e9 + 1e9);
}

TEST(Traffic, MoreServersReduceTrafficOfServersNotOfWorkers) {
  Exchange exchange = OfModel(1e9, 8);
  for (const uint32_t servers : {1u, 2u, 8u}) {
    exchange.servers = servers;
    const StepTraffic traffic = RowOf(Strategy::kParameterServer).traffic(exchange);
    EXPECT_DOUBLE_EQ(traffic.sends, 1e9);
    EXPECT_DOUBLE_EQ(traffic.server_receives, 8e9 / servers);
    EXPECT_DOUBLE_EQ(traffic.server_sends, 8e9 / servers);
  }
}

// 12 GPUs of each worker hold the model together: servers have all of it, as with one GPU.
TEST(Traffic, ServerTrafficDoesNotDependOnModelParts) {
  const Exchange whole = {
      .gradient_bytes = 12e9, .weight_bytes = 12e9, .workers = 8, .servers = 16};
  Exchange cut = OfModel(1e9, 8);
  cut.parts = 12;
  cut.servers = 16;
  const StrategyRow& row = RowOf(Strategy::kParameterServer);
  EXPECT_DOUBLE_EQ(row.traffic(cut).server_receives, row.traffic(whole).server_receives);
  EXPECT_DOUBLE_EQ(row.traffic(cut).sends, 1e9);
  // 96 GPUs push to 16 servers: a server's link carries six times as much as a GPU's.
  const LinkCost link = {.alpha = 0, .beta = 1e-9, .gamma = 0};
  EXPECT_DOUBLE_EQ(row.seconds(cut, link), 2 * 6.0);
}

TEST(Traffic, GpuTrafficCountsEachPush) {
  Exchange exchange = OfModel(1e9, 2);
  exchange.pushes = 3;
  const StepTraffic traffic = RowOf(Strategy::kParameterServer).traffic(exchange);
  EXPECT_DOUBLE_EQ(traffic.sends, 3e9);
  EXPECT_DOUBLE_EQ(traffic.receives, 1e9);
  EXPECT_DOUBLE_EQ(traffic.server_receives, 6e9);
  EXPECT_DOUBLE_EQ(traffic.server_sends, 2e9);
}

TEST(Seconds, ParameterServerTakesTimeOfItsBusiestLink) {
  Exchange exchange = OfModel(1e8, 4);
  const StrategyRow& row = RowOf(Strategy::kParameterServer);
  // One server receives and sends the data of all four workers.
  EXPECT_DOUBLE_EQ(row.seconds(exchange, kLink), 2 * (4 * 1e-5 + 4 * 1e8 * 1e-9) + 4 * 1e8 * 1e-10);
  // Eight servers: a worker's own link is the busiest.
  exchange.servers = 8;
  EXPECT_DOUBLE_EQ(row.seconds(exchange, kLink), 2 * (8 * 1e-5 + 1e8 * 1e-9) + 0.5 * 1e8 * 1e-10);
}

// The lectures: 2 (N - 1) alpha + 2 (N - 1) / N S beta.
TEST(Seconds, RingTimesMatchLectures) {
  const LinkCost link = {.alpha = 1e-5, .beta = 1e-9, .gamma = 0};
  for (const Strategy strategy : {Strategy::kRing, Strategy::kZero1, Strategy::kZero2}) {
    EXPECT_NEAR(RowOf(strategy).seconds(OfModel(1e8, 4), link), 6 * 1e-5 + 1.5 * 1e8 * 1e-9, 1e-9);
  }
  EXPECT_NEAR(RowOf(Strategy::kZero3).seconds(OfModel(1e8, 4), link),
              1.5 * (6 * 1e-5 + 1.5 * 1e8 * 1e-9), 1e-9);
}

// The lectures: 2 log2(N) alpha + 2 (N - 1) / N S beta.
TEST(Seconds, HalvingDoublingTimesCountFewerMessages) {
  const LinkCost link = {.alpha = 1e-5, .beta = 1e-9, .gamma = 0};
  EXPECT_NEAR(RowOf(Strategy::kHalvingDoubling).seconds(OfModel(1e8, 16), link),
              2 * 4 * 1e-5 + 2 * 15.0 / 16 * 1e8 * 1e-9, 1e-9);
}

TEST(Seconds, SingleWorkerTakesNoTimeExceptWithAServer) {
  for (const Strategy strategy : kAll) {
    const double seconds = RowOf(strategy).seconds(OfModel(1e8, 1), kLink);
    EXPECT_EQ(seconds > 0, strategy == Strategy::kParameterServer) << RowOf(strategy).name;
  }
}

}  // namespace
}  // namespace tug
