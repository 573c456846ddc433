#include "plan/step_time.h"

#include <gtest/gtest.h>

#include "collective/ring.h"

namespace tug {
namespace {

constexpr LinkCost kLink = {.alpha = 1e-5, .beta = 1e-9, .gamma = 1e-10};

TEST(CommunicationSeconds, OfAParameterServerAreThoseOfItsBusiestLink) {
  // One server takes and gives what all four workers have.
  EXPECT_DOUBLE_EQ(CommunicationSeconds(Strategy::kParameterServer, kLink, 1e8, 4, 1),
                   2 * (4 * 1e-5 + 4 * 1e8 * 1e-9) + 4 * 1e8 * 1e-10);
  // Eight servers: a worker's own link is the busiest.
  EXPECT_DOUBLE_EQ(CommunicationSeconds(Strategy::kParameterServer, kLink, 1e8, 4, 8),
                   2 * (8 * 1e-5 + 1e8 * 1e-9) + 0.5 * 1e8 * 1e-10);
}

// The lectures: 2 (N - 1) alpha + 2 (N - 1) / N S beta.
TEST(CommunicationSeconds, OfARingAreTheLectures) {
  const LinkCost link = {.alpha = 1e-5, .beta = 1e-9, .gamma = 0};
  for (const Strategy strategy : {Strategy::kRing, Strategy::kZero1, Strategy::kZero2}) {
    EXPECT_NEAR(CommunicationSeconds(strategy, link, 1e8, 4, 1), 6 * 1e-5 + 1.5 * 1e8 * 1e-9, 1e-9);
  }
  EXPECT_NEAR(CommunicationSeconds(Strategy::kZero3, link, 1e8, 4, 1),
              1.5 * (6 * 1e-5 + 1.5 * 1e8 * 1e-9), 1e-9);
}

// The lectures: 2 log2(N) alpha + 2 (N - 1) / N S beta.
TEST(CommunicationSeconds, OfHalvingDoublingHaveFewerMessages) {
  const LinkCost link = {.alpha = 1e-5, .beta = 1e-9, .gamma = 0};
  EXPECT_NEAR(CommunicationSeconds(Strategy::kHalvingDoubling, link, 1e8, 16, 1),
              2 * 4 * 1e-5 + 2 * 15.0 / 16 * 1e8 * 1e-9, 1e-9);
}

TEST(CommunicationSeconds, OfOneWorkerAreNoneButWithAServer) {
  EXPECT_EQ(CommunicationSeconds(Strategy::kRing, kLink, 1e8, 1, 1), 0);
  EXPECT_EQ(CommunicationSeconds(Strategy::kHalvingDoubling, kLink, 1e8, 1, 1), 0);
  EXPECT_EQ(CommunicationSeconds(Strategy::kZero3, kLink, 1e8, 1, 1), 0);
  EXPECT_GT(CommunicationSeconds(Strategy::kParameterServer, kLink, 1e8, 1, 1), 0);
}

}  // namespace
}  // namespace tug
