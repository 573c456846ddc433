// SPDX-License-Identifier: Apache-2.0
// Distance of the tuner's result from the best point of the grid after 20 trials, on noisy
// synthetic step times by ByteScheduler's model (Peng et al. 2019, section 4.3).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <random>
#include <vector>

#include "scheduler/tuner.h"

namespace tug {
namespace {

constexpr double kMiB = 1 << 20;

// A network and a job: they determine the step time under a point.
struct Surface {
  double link = 1.25e8;       // bytes/s
  double round_trip = 1e-3;   // s, until credit is back
  double message = 1e-4;      // s per partition, whatever its size
  double compute = 0.3;       // s per step
  double model = 100 * kMiB;  // bytes
  double interruptions = 4;  // times per step that an urgent block waits for the credit ahead of it

  double Seconds(const SchedulePoint& point) const {
    const auto partition = static_cast<double>(point.partition_bytes);
    const double credit = std::min(static_cast<double>(point.credit_bytes), model);
    const double partition_seconds = partition / link + message;
    // A partition's credit returns one round trip after it was sent.
    const double window = std::max(1.0, std::floor(credit / partition));
    const double rate = std::min(partition / partition_seconds,
                                 window * partition / (partition_seconds + round_trip));
    const double transfer = model / rate;
    const double not_overtaken = interruptions * credit / link;
    const double not_overlapped = 2 * partition / link;
    return std::max(compute, transfer) + not_overlapped +
           0.3 * std::min(compute, transfer) * std::min(1.0, not_overtaken / transfer) +
           std::min(compute, transfer) * 0.1;
  }
};

Surface Random(std::mt19937_64& random) {
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random));
  };
  Surface surface;
  surface.link = between(1.25e7, 3e9);
  surface.round_trip = between(1e-4, 2e-2);
  surface.message = between(5e-6, 2e-3);
  surface.model = between(20, 600) * kMiB;
  surface.compute = between(0.25, 4) * surface.model / surface.link;
  surface.interruptions = between(1, 20);
  return surface;
}

// Relative excess of the settled point's step time over the best point's.
double Distance(const Surface& truth, const Surface* expected, uint64_t segment_bytes, double noise,
                uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  const auto model = static_cast<uint64_t>(truth.model);
  Tuner::Options options;
  options.points = SchedulePoints(segment_bytes, model / 3, model);
  options.own = {4 << 20, 32 << 20};
  Tuner tuner(options);
  double best = truth.Seconds(options.own);
  for (const SchedulePoint& point : options.points) best = std::min(best, truth.Seconds(point));
  for (uint32_t step = 0; !tuner.is_settled(); ++step) {
    EXPECT_LT(step, 20u * 5);
    const auto event =
        tuner.Observe(truth.Seconds(tuner.Suggest()) * std::max(0.5, 1 + normal(random)));
    if (event != Tuner::Event::kTrial || tuner.trial().number != 1 || expected == nullptr) continue;
    std::vector<double> seconds;
    for (const SchedulePoint& point : tuner.points()) seconds.push_back(expected->Seconds(point));
    tuner.SetPrediction(std::move(seconds));
  }
  return truth.Seconds(tuner.Suggest()) / best - 1;
}

enum class Prediction { kNone, kNear, kAnothers };

struct Case {
  const char* name;
  Prediction prediction;
  double min_within;  // min fraction of surfaces that end within 5%
  double most;        // max distance of any surface
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class TunerSearch : public testing::TestWithParam<Case> {};

TEST_P(TunerSearch, EndsNearTheBestOfTheGridUnderNoise) {
  constexpr uint64_t kSeeds = 100;
  for (const uint64_t segment_bytes : {4 << 10, 1 << 20}) {
    std::vector<double> distances;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      std::mt19937_64 random(seed);
      const Surface truth = Random(random);
      Surface expected = truth;
      if (GetParam().prediction == Prediction::kNear) {
        expected.link *= 1.3;
        expected.round_trip *= 0.6;
        expected.message *= 1.6;
        expected.interruptions *= 0.7;
      } else {
        expected = Random(random);
      }
      const bool none = GetParam().prediction == Prediction::kNone;
      distances.push_back(Distance(truth, none ? nullptr : &expected, segment_bytes, 0.05, seed));
    }
    std::sort(distances.begin(), distances.end());
    const auto within = std::upper_bound(distances.begin(), distances.end(), 0.05);
    const auto part = static_cast<double>(within - distances.begin()) / kSeeds;
    std::printf("segments of %d KiB: median %.1f%%, 95th %.1f%%, worst %.1f%%, within 5%%: %.2f\n",
                static_cast<int>(segment_bytes >> 10), 100 * distances[kSeeds / 2],
                100 * distances[kSeeds * 95 / 100], 100 * distances.back(), part);
    EXPECT_GE(part, GetParam().min_within);
    EXPECT_LE(distances.back(), GetParam().most);
  }
}

INSTANTIATE_TEST_SUITE_P(Surfaces, TunerSearch,
                         testing::Values(Case{"WithoutAPrediction", Prediction::kNone, 0.9, 0.2},
                                         // All constants are wrong by about a third.
                                         Case{"WithAPrediction", Prediction::kNear, 0.96, 0.15},
                                         // Prediction for an unrelated network.
                                         Case{"WithAnothersPrediction", Prediction::kAnothers, 0.85,
                                              0.25}),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace tug
