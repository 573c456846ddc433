// SPDX-License-Identifier: Apache-2.0
#include "server/segments/shadow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "compression/codecs/frames.h"

namespace tug {
namespace {

constexpr uint64_t kElements = 1000;
constexpr Segment kSegment{.block = 2, .index = 1, .begin = 4096, .end = 4096 + kElements};

class ShadowTest : public testing::Test {
 protected:
  static std::vector<float> Wave(float phase) {
    std::vector<float> wave(kElements);
    for (size_t i = 0; i < kElements; ++i) wave[i] = std::sin(phase + 0.1f * static_cast<float>(i));
    return wave;
  }
  // The shadow of `version`.
  std::vector<float> Make(ShadowMaker& maker, uint64_t version, const std::vector<float>& weights,
                          const std::vector<float>& before) {
    changes_.resize(maker.MaxChangesBytes(kElements));
    std::vector<float> after(kElements, -7.0f);
    maker.Make(kSegment, version, weights, before, after, changes_);
    return after;
  }
  std::span<const std::byte> Changes() const { return ChangesIn(changes_, kElements); }
  static size_t Different(const std::vector<float>& a, const std::vector<float>& b) {
    size_t different = 0;
    for (size_t i = 0; i < a.size(); ++i) different += a[i] != b[i] ? 1 : 0;
    return different;
  }

  std::vector<std::byte> changes_;
};

TEST_F(ShadowTest, TakesTheLargestChangesAndTheFrameBringsThem) {
  ShadowMaker maker({.density = 0.1});
  const std::vector<float> before = Wave(0), weights = Wave(1);
  const std::vector<float> after = Make(maker, 3, weights, before);
  EXPECT_EQ(Different(after, before), kElements / 10);
  float min_taken = std::numeric_limits<float>::infinity(), max_left = 0;
  for (size_t i = 0; i < kElements; ++i) {
    const float change = std::abs(weights[i] - before[i]);
    if (after[i] == before[i]) {
      max_left = std::max(max_left, change);
    } else {
      min_taken = std::min(min_taken, change);
      EXPECT_EQ(after[i], before[i] + (weights[i] - before[i]));
    }
  }
  EXPECT_GE(min_taken, max_left);
  std::span<const std::byte> bytes = Changes();
  std::vector<float> at_worker = before;
  const std::optional<Frame> frame = TakeFrame(kElements, bytes);
  ASSERT_TRUE(frame.has_value());
  ASSERT_TRUE(DecodeFrame(*frame, DecodeTo::kAdd, at_worker));
  EXPECT_EQ(at_worker, after);
  EXPECT_TRUE(bytes.empty());
}

TEST_F(ShadowTest, ComesToTheWeightsWhereTheyStay) {
  ShadowMaker maker({.density = 0.5});
  const std::vector<float> weights = Wave(1);
  std::vector<float> shadow = Wave(0);
  uint64_t version = 1;
  for (; shadow != weights && version < 10; ++version)
    shadow = Make(maker, version, weights, shadow);
  EXPECT_EQ(shadow, weights);
  EXPECT_LE(version, 6u) << "half of what is left at a time, and what rounding left";
}

TEST_F(ShadowTest, IsTheWeightsAtWholeVersions) {
  ShadowMaker maker({.density = 0.1, .whole_every = 4});
  const std::vector<float> before = Wave(0), weights = Wave(1);
  for (uint64_t version = 1; version <= 8; ++version) {
    const std::vector<float> after = Make(maker, version, weights, before);
    EXPECT_EQ(after == weights, version % 4 == 0) << version;
    EXPECT_EQ(Changes().empty(), version % 4 == 0) << version;
  }
}

TEST_F(ShadowTest, IsTheWeightsWhileTheyAreNotFinite) {
  ShadowMaker maker({.density = 0.1});
  std::vector<float> weights = Wave(1);
  weights[17] = std::numeric_limits<float>::infinity();
  std::vector<float> shadow = Make(maker, 1, weights, Wave(0));
  EXPECT_EQ(shadow, weights);
  EXPECT_TRUE(Changes().empty());
  shadow = Make(maker, 2, weights, shadow);
  EXPECT_EQ(shadow, weights);
  EXPECT_TRUE(Changes().empty());
}

TEST_F(ShadowTest, HasNoChangesInBytesThatAreZero) {
  changes_.assign(ShadowMaker({.density = 0.1}).MaxChangesBytes(kElements), std::byte{0});
  EXPECT_TRUE(Changes().empty());
}

}  // namespace
}  // namespace tug
