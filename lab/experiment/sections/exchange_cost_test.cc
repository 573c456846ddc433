// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/exchange_cost.h"

#include <algorithm>
#include <string>

#include "collective/algorithms.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr LinkCost kLink = {.alpha = 1e-3, .beta = 1e-6, .gamma = 0};
constexpr double kBytes = 12000;

ExchangeCost CostOf(const ExchangeCase& exchange, uint32_t workers = 4,
                    const LinkCost& link = kLink) {
  return CostOfExchange(exchange, workers, kBytes, link);
}
ExchangeCase Servers(uint32_t count) { return {ExchangeKind::kServers, count}; }
ExchangeCase Mixed(uint32_t count) { return {ExchangeKind::kMixed, count}; }
constexpr ExchangeCase kRing = {ExchangeKind::kRing};
constexpr ExchangeCase kHalvingDoubling = {ExchangeKind::kHalvingDoubling};
constexpr ExchangeCase kZero1 = {ExchangeKind::kZero1};
constexpr ExchangeCase kZero2 = {ExchangeKind::kZero2};
constexpr ExchangeCase kZero3 = {ExchangeKind::kZero3};

// Push, then pull; a server's link carries N / P models each way.
TEST(ExchangeCost, CostOfServersIsCostOfBusierLink) {
  const ExchangeCost one = CostOf(Servers(1));
  EXPECT_DOUBLE_EQ(one.worker.sends, kBytes);
  EXPECT_DOUBLE_EQ(one.server.sends, 4 * kBytes);
  EXPECT_DOUBLE_EQ(one.BusiestBytes(), 4 * kBytes);
  EXPECT_DOUBLE_EQ(one.seconds, 2 * (4e-3 + 4 * 12e-3));
  EXPECT_DOUBLE_EQ(one.overlapped_seconds, 2 * 4e-3 + 48e-3) << "both directions at once";
  EXPECT_DOUBLE_EQ(CostOf(Servers(2)).seconds, 2 * (4e-3 + 24e-3));
  EXPECT_DOUBLE_EQ(CostOf(Servers(4)).seconds, 2 * (4e-3 + 12e-3));
  EXPECT_DOUBLE_EQ(CostOf(Servers(8)).seconds, 2 * (8e-3 + 12e-3)) << "a worker's link";
}

TEST(ExchangeCost, CostOfAllReduceIsCostOfItsAlgorithm) {
  for (const uint32_t workers : {2u, 3u, 4u, 7u, 8u}) {
    for (const char* name : {"ring", "halving_doubling"}) {
      EXPECT_DOUBLE_EQ(
          CostOf(name == std::string("ring") ? kRing : kHalvingDoubling, workers).seconds,
          FindAllReduce(name)->seconds(kLink, workers, static_cast<uint64_t>(kBytes), {}))
          << name << " " << workers;
    }
    const ExchangeCost ring = CostOf(kRing, workers);
    EXPECT_DOUBLE_EQ(ring.BusiestBytes(), 2 * kBytes * (workers - 1) / workers);
    EXPECT_NEAR(ring.overlapped_seconds, ring.seconds, 1e-12) << "it uses both directions always";
  }
}

// The lectures: 2 Psi, and 3 Psi with stage 3.
TEST(ExchangeCost, ZeroSendsTwoModelsAndThreeInStageThree) {
  for (const ExchangeCase& zero : {kZero1, kZero2}) {
    EXPECT_DOUBLE_EQ(CostOf(zero).BusiestBytes(), 2 * kBytes * 3 / 4);
    EXPECT_DOUBLE_EQ(CostOf(zero).seconds, CostOf(kRing).seconds);
    EXPECT_EQ(CostOf(zero).server.sends, 0);
  }
  EXPECT_DOUBLE_EQ(CostOf(kZero3).BusiestBytes(), 3 * kBytes * 3 / 4);
}

TEST(ExchangeCost, MixedPartsMakeAllLinksEquallyBusyAndAreAllOfTheModel) {
  for (const uint32_t workers : {2u, 3u, 4u, 8u, 31u}) {
    for (uint32_t extra = 1; extra < workers; ++extra) {
      const MixedParts parts = BytePsParts(workers, extra);
      EXPECT_NEAR(workers * parts.beside + extra * parts.alone, 1, 1e-12);
      const ExchangeCost cost = CostOf(Mixed(extra), workers);
      EXPECT_NEAR(cost.worker.sends, cost.server.sends, 1e-6 * kBytes);
      EXPECT_LE(cost.BusiestBytes(), CostOf(kZero1, workers).BusiestBytes() * (1 + 1e-12));
    }
    const MixedParts whole = BytePsParts(workers, workers);
    EXPECT_EQ(whole.beside, 0);
    EXPECT_DOUBLE_EQ(whole.alone, 1.0 / workers);
    EXPECT_DOUBLE_EQ(CostOf(Mixed(workers), workers).BusiestBytes(),
                     CostOf(Servers(workers), workers).BusiestBytes());
  }
}

// 4 workers and 1 more: 16 + 4 - 2 = 18, x = 3 / 18, y = 6 / 18.
TEST(ExchangeCost, CostOfMixedExchangeMatchesHandCalculation) {
  const LinkCost link = {.alpha = 1e-3, .beta = 1e-6, .gamma = 1e-6};
  const ExchangeCost cost = CostOf(Mixed(1), 4, link);
  EXPECT_NEAR(cost.server.sends, 16000, 1e-6);
  EXPECT_NEAR(cost.worker.sends, 10000 + 3 * 2000, 1e-6);
  EXPECT_NEAR(cost.seconds, 2 * (4e-3 + 16e-3) + 16e-3, 1e-12);
  EXPECT_NEAR(cost.overlapped_seconds, 2 * 4e-3 + 16e-3 + 16e-3, 1e-12);
}

TEST(LecturesHeldBytes, FallByStage) {
  const auto held = [](const ExchangeCase& exchange) {
    return LecturesHeldBytes(exchange, 4, 4e6);
  };
  EXPECT_DOUBLE_EQ(held(kRing), 16e6);
  EXPECT_DOUBLE_EQ(held(kZero1), 10e6);
  EXPECT_DOUBLE_EQ(held(kZero2), 7e6);
  EXPECT_DOUBLE_EQ(held(kZero3), 4e6);
  EXPECT_DOUBLE_EQ(held(Servers(2)), 8e6);
  EXPECT_DOUBLE_EQ(held(Mixed(1)), 8e6 + 8e6 / 6);
}

}  // namespace
}  // namespace tug
