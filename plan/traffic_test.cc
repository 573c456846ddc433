#include "plan/traffic.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

double WorkerBytes(Strategy strategy, uint32_t workers) {
  return TrafficOf(strategy, 1e9, workers, 1).worker_bytes;
}

// The lectures: 2 (N - 1) / N Psi, about 2 Psi, and 3 Psi with ZeRO-3.
TEST(TrafficOf, IsTheLecturesForCollectives) {
  for (const Strategy strategy : {Strategy::kRing, Strategy::kZero1, Strategy::kZero2}) {
    EXPECT_DOUBLE_EQ(WorkerBytes(strategy, 4), 1.5e9);
    EXPECT_NEAR(WorkerBytes(strategy, 100000), 2e9, 1e5);
    EXPECT_EQ(WorkerBytes(strategy, 1), 0);
  }
  EXPECT_DOUBLE_EQ(WorkerBytes(Strategy::kZero3, 4), 2.25e9);
  EXPECT_NEAR(WorkerBytes(Strategy::kZero3, 100000), 3e9, 1e5);
}

TEST(TrafficOf, HalvingDoublingPaysForWhatIsNoPowerOfTwo) {
  EXPECT_DOUBLE_EQ(WorkerBytes(Strategy::kHalvingDoubling, 8), WorkerBytes(Strategy::kRing, 8));
  EXPECT_DOUBLE_EQ(WorkerBytes(Strategy::kHalvingDoubling, 9), 1.75e9 + 1e9);
}

TEST(TrafficOf, AParameterServersShrinksWithTheirNumberNotAWorkers) {
  for (const uint32_t servers : {1u, 2u, 8u}) {
    const StepTraffic traffic = TrafficOf(Strategy::kParameterServer, 1e9, 8, servers);
    EXPECT_DOUBLE_EQ(traffic.worker_bytes, 1e9);
    EXPECT_DOUBLE_EQ(traffic.server_bytes, 8e9 / servers);
  }
}

}  // namespace
}  // namespace tug
