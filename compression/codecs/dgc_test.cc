// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/dgc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compression/codecs/codec_test_support.h"
#include "compression/dense/dense_test_support.h"
#include "compression/sparse/select_top.h"
#include "compression/sparse/sparse.h"
#include "compression/sparse/top_k.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

PushCodecConfig ConfigOf(double density, double momentum, uint64_t fall_steps = 0) {
  PushCodecConfig config;
  config.mutable_dgc()->set_density(density);
  config.mutable_dgc()->set_momentum(momentum);
  config.mutable_dgc()->set_density_warmup_steps(fall_steps);
  return config;
}

// A codec and its residual and state of a segment.
struct Worker {
  Worker(const PushCodecConfig& config, size_t n)
      : codec(config), kept(n + codec.StateFloats(n)), out(codec.MaxEncodedBytes(n)) {}

  std::span<float> residual() { return std::span(kept).first(kept.size() / 2); }
  std::span<float> velocity() { return std::span(kept).last(kept.size() / 2); }
  // Returns the pushed gradient.
  std::vector<float> Step(const std::vector<float>& gradient, uint64_t clock) {
    CodecScratch scratch;
    bytes = codec.EncodeWithResidual({.clock = clock}, gradient, kept, out, scratch);
    std::vector<float> decoded(gradient.size());
    EXPECT_TRUE(codec.Decode(std::span(out).first(bytes), DecodeTo::kStore, decoded));
    return decoded;
  }

  const DgcSegmentCodec codec;
  std::vector<float> kept;
  std::vector<std::byte> out;
  size_t bytes = 0;
};

TEST(Dgc, TakesTheBytesItPromisesAtOnePercent) {
  constexpr size_t kElements = 262144;
  const DgcSegmentCodec codec(ConfigOf(0.01, 0.9));
  CodecScratch scratch;
  std::vector<std::byte> out(codec.MaxEncodedBytes(kElements));
  const auto elements = NormalElements(kElements, 1, 0.01f);
  const auto bytes = static_cast<double>(codec.Encode({}, elements, out, scratch));
  const double percent = 100 * bytes / (kElements * sizeof(float));
  RecordProperty("percent_of_fp32", std::to_string(percent));
  EXPECT_NEAR(percent, 1.3, 0.25);
}

// Compares with algorithm 4 of the paper step by step, given the elements sent.
TEST(Dgc, SendsTheLargestSumsOfVelocitiesAndKeepsTheOthers) {
  constexpr size_t kElements = 20000;
  constexpr float kMomentum = 0.9f;
  const size_t count = KeptElements(0.01, kElements);
  Worker worker(ConfigOf(0.01, kMomentum), kElements);
  std::vector<float> u(kElements, 0.0f), v(kElements, 0.0f);
  std::vector<double> velocities(kElements, 0.0), arrived(kElements, 0.0);
  for (uint64_t clock = 0; clock < 40; ++clock) {
    const auto g = NormalElements(kElements, clock, 0.01f);
    const auto sent = worker.Step(g, clock);
    float min_sent = std::numeric_limits<float>::max(), max_kept = 0;
    size_t sent_count = 0;
    for (size_t i = 0; i < kElements; ++i) {
      u[i] = kMomentum * u[i] + g[i];
      v[i] += u[i];
      velocities[i] += u[i];
      if (sent[i] != 0.0f) {
        ASSERT_EQ(sent[i], v[i]) << i;
        ++sent_count;
        arrived[i] += sent[i];
        min_sent = std::min(min_sent, std::abs(v[i]));
        u[i] = v[i] = 0.0f;
      } else {
        max_kept = std::max(max_kept, std::abs(v[i]));
      }
    }
    EXPECT_GE(min_sent, max_kept);
    EXPECT_GE(sent_count, count / 2);
    EXPECT_LE(sent_count, MostAbout(count));
    ASSERT_EQ(BitsOf(worker.residual()), BitsOf(v)) << clock;
    ASSERT_EQ(BitsOf(worker.velocity()), BitsOf(u)) << clock;
  }
  for (size_t i = 0; i < kElements; ++i) {
    ASSERT_NEAR(arrived[i] + worker.residual()[i], velocities[i], 1e-5) << i;
  }
}

// The paper's momentum correction: a late element moves as far as with momentum SGD.
TEST(Dgc, DelayedElementMovesAsFarAsWithMomentumSgd) {
  constexpr size_t kElements = 100;
  constexpr int kSteps = 30;
  Worker worker(ConfigOf(0.01, 0.9), kElements);
  std::vector<float> gradient = NormalElements(kElements, 3, 0.01f);
  for (float& g : gradient) g = std::abs(g);
  gradient[42] = 1000;
  for (int step = 0; step < kSteps; ++step) worker.Step(gradient, 0);
  double way = 0, velocity = 0;
  for (int step = 0; step < kSteps; ++step) way += velocity = 0.9 * velocity + 1;
  EXPECT_GT(way, 5 * kSteps);
  for (size_t i = 0; i < kElements; ++i) {
    if (i == 42) continue;
    EXPECT_NEAR(worker.residual()[i], way * gradient[i], 1e-4 * way * gradient[i]);
  }
  gradient[42] = 0;
  const size_t largest =
      static_cast<size_t>(std::max_element(worker.residual().begin(), worker.residual().end()) -
                          worker.residual().begin());
  const auto sent = worker.Step(gradient, 0);
  EXPECT_GT(sent[largest], way * gradient[largest]);
  EXPECT_EQ(worker.residual()[largest], 0.0f);
  EXPECT_EQ(worker.velocity()[largest], 0.0f);
}

TEST(Dgc, AllSentAtOnceIsSgdWithoutMomentum) {
  constexpr size_t kElements = 20000;
  Worker worker(ConfigOf(1.0, 0.9), kElements);
  for (uint64_t clock = 0; clock < 4; ++clock) {
    const auto gradient = NormalElements(kElements, clock, 0.01f);
    EXPECT_EQ(worker.Step(gradient, clock), gradient);
  }
}

TEST(Dgc, WithoutMomentumIsTopKWithErrorFeedbackWhereSelectionIsExact) {
  constexpr size_t kElements = 1000;
  Worker worker(ConfigOf(0.05, 0), kElements);
  PushCodecConfig config;
  config.mutable_top_k()->set_density(0.05);
  const TopKCodec top_k(config);
  CodecScratch scratch;
  std::vector<float> residual(kElements, 0.0f);
  std::vector<std::byte> out(top_k.MaxEncodedBytes(kElements));
  for (uint64_t clock = 0; clock < 10; ++clock) {
    const auto gradient = NormalElements(kElements, clock, 0.01f);
    worker.Step(gradient, clock);
    const size_t bytes = top_k.EncodeWithResidual({}, gradient, residual, out, scratch);
    ASSERT_EQ(bytes, worker.bytes);
    ASSERT_TRUE(
        std::equal(out.begin(), out.begin() + static_cast<ptrdiff_t>(bytes), worker.out.begin()));
    ASSERT_EQ(BitsOf(residual), BitsOf(worker.residual()));
  }
}

TEST(Dgc, DensityFallsExponentiallyFromAQuarterAfterTheWholeGradients) {
  PushCodecConfig config = ConfigOf(0.001, 0.9, 4);
  config.set_warmup_steps(10);
  const DgcSegmentCodec codec(config);
  EXPECT_EQ(codec.DensityAt(0), 0.25);
  EXPECT_EQ(codec.DensityAt(10), 0.25);
  for (uint64_t step = 1; step < 4; ++step) {
    EXPECT_NEAR(codec.DensityAt(10 + step), 0.25 * std::pow(0.004, static_cast<double>(step) / 4),
                1e-9);
  }
  EXPECT_EQ(codec.DensityAt(14), 0.001);
  EXPECT_EQ(codec.DensityAt(1'000'000'000), 0.001);
  EXPECT_EQ(DgcSegmentCodec(ConfigOf(0.4, 0.9, 4)).DensityAt(0), 0.4) << "does not rise";
}

TEST(Dgc, SendsAboutTheDensityOfEveryClock) {
  constexpr size_t kElements = 65536;
  Worker worker(ConfigOf(0.004, 0.9, 12), kElements);
  for (uint64_t clock = 0; clock < 20; ++clock) {
    const auto sent = worker.Step(NormalElements(kElements, clock, 0.01f), clock);
    const auto nonzero = kElements - std::count(sent.begin(), sent.end(), 0.0f);
    const size_t count = KeptElements(worker.codec.DensityAt(clock), kElements);
    EXPECT_GE(nonzero, count / 2) << clock;
    EXPECT_LE(nonzero, MostAbout(count)) << clock;
    EXPECT_LE(worker.bytes, worker.out.size()) << clock;
  }
  const DgcSegmentCodec at_once(ConfigOf(0.004, 0.9));
  EXPECT_LT(at_once.MaxEncodedBytes(kElements), kElements * sizeof(float) / 100);
}

TEST(Dgc, ADroppedPushGivesBackWhatWasSentButNotItsVelocity) {
  constexpr size_t kElements = 1000;
  Worker worker(ConfigOf(0.05, 0.9), kElements);
  const auto gradient = NormalElements(kElements, 1, 0.01f);
  const auto sent = worker.Step(gradient, 0);
  ASSERT_TRUE(worker.codec.Decode(std::span(worker.out).first(worker.bytes), DecodeTo::kAdd,
                                  worker.residual()));
  EXPECT_EQ(std::vector<float>(worker.residual().begin(), worker.residual().end()), gradient);
  for (size_t i = 0; i < kElements; ++i) {
    EXPECT_EQ(worker.velocity()[i], sent[i] == 0.0f ? gradient[i] : 0.0f) << i;
  }
}

TEST(Dgc, HasTheSameBitsOnEveryInstructionSet) {
  constexpr size_t kElements = 20011;
  std::vector<std::vector<uint32_t>> kept;
  std::vector<std::vector<std::byte>> encodings;
  OnEveryInstructionSet([&] {
    Worker worker(ConfigOf(0.01, 0.9, 3), kElements);
    for (uint64_t clock = 0; clock < 5; ++clock) {
      worker.Step(NormalElements(kElements, clock, 0.01f), clock);
    }
    worker.out.resize(worker.bytes);
    kept.push_back(BitsOf(worker.kept));
    encodings.push_back(worker.out);
    EXPECT_EQ(kept.back(), kept.front());
    EXPECT_EQ(encodings.back(), encodings.front());
  });
}

}  // namespace
}  // namespace tug
