// SPDX-License-Identifier: Apache-2.0
// top_k, top_k_int8 and random_k, beyond what holds for every codec.

#include <algorithm>
#include <set>

#include "compression/codecs/codec_test_support.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr size_t kSegment = 262144;

std::vector<std::byte> Encode(const PushCodecConfig& config, std::span<const float> elements,
                              const CodecKey& key = {}) {
  const auto codec = MakeCodec(config);
  CodecScratch scratch;
  std::vector<std::byte> out(codec->MaxEncodedBytes(elements.size()));
  out.resize(codec->Encode(key, elements, out, scratch));
  return out;
}

std::vector<float> Decode(const PushCodecConfig& config, std::span<const std::byte> encoded,
                          size_t n) {
  std::vector<float> elements(n);
  EXPECT_TRUE(DecoderOf(config.codec_case())->Decode(encoded, DecodeTo::kStore, elements));
  return elements;
}

PushCodecConfig ConfigOf(PushCodecConfig::CodecCase id) { return DefaultConfig(*FindCodec(id)); }

double PercentOfFp32(PushCodecConfig::CodecCase id) {
  const std::vector<float> elements = NormalElements(kSegment, 1, 0.01f);
  return 100.0 * static_cast<double>(Encode(ConfigOf(id), elements).size()) /
         (kSegment * sizeof(float));
}

TEST(SparseCodecs, TakeTheBytesTheyPromiseAtOnePercent) {
  EXPECT_LE(PercentOfFp32(PushCodecConfig::kTopK), 1.27);
  EXPECT_LE(PercentOfFp32(PushCodecConfig::kTopKInt8), 0.523);
  EXPECT_LE(PercentOfFp32(PushCodecConfig::kRandomK), 1.001);
}

TEST(TopK, KeepsTheLargestToTheBitAndNothingElse) {
  std::vector<float> elements = NormalElements(1000, 2, 1.0f);
  elements[17] = -40;
  elements[18] = elements[500] = elements[999] = 30;
  PushCodecConfig config = ConfigOf(PushCodecConfig::kTopK);
  config.mutable_top_k()->set_density(0.003);
  std::vector<float> expected(1000, 0.0f);
  expected[17] = -40;
  expected[18] = expected[500] = 30;  // of equal ones the first
  EXPECT_EQ(Decode(config, Encode(config, elements), 1000), expected);
}

// The subject of an experiment's ablation: small elements that never change sign are lost for good,
// or only late.
TEST(TopK, SmallElementsArriveWithErrorFeedbackAndNeverWithout) {
  constexpr size_t kElements = 1000;
  constexpr int kSteps = 300;
  std::vector<float> gradient(kElements, 0.1f);
  std::fill_n(gradient.begin(), 10, 1.0f);
  const PushCodecConfig config = ConfigOf(PushCodecConfig::kTopK);
  const auto codec = MakeCodec(config);
  CodecScratch scratch;
  std::vector<std::byte> out(codec->MaxEncodedBytes(kElements));
  std::vector<float> residual(kElements, 0.0f), with(kElements, 0.0f), without(kElements, 0.0f);
  for (int step = 0; step < kSteps; ++step) {
    const size_t fed_back = codec->EncodeWithResidual({}, gradient, residual, out, scratch);
    ASSERT_TRUE(codec->Decode(std::span(out).first(fed_back), DecodeTo::kAdd, with));
    const size_t alone = codec->Encode({}, gradient, out, scratch);
    ASSERT_TRUE(codec->Decode(std::span(out).first(alone), DecodeTo::kAdd, without));
  }
  for (size_t i = 10; i < kElements; ++i) {
    ASSERT_GT(with[i], kSteps * 0.1f / 2) << i;
    ASSERT_EQ(without[i], 0.0f) << i;
  }
}

TEST(TopK, SendsNoZeros) {
  std::vector<float> elements(kSegment, 0.0f);
  elements[5] = elements[77777] = 1;
  const PushCodecConfig config = ConfigOf(PushCodecConfig::kTopK);
  const std::vector<std::byte> encoded = Encode(config, elements);
  EXPECT_LT(encoded.size(), 40u);
  EXPECT_EQ(Decode(config, encoded, kSegment), elements);
}

TEST(TopKInt8, IsOffByHalfAScaleAtMost) {
  const std::vector<float> elements = NormalElements(kSegment, 3, 0.01f);
  const PushCodecConfig config = ConfigOf(PushCodecConfig::kTopKInt8);
  const std::vector<float> decoded = Decode(config, Encode(config, elements), kSegment);
  const PushCodecConfig exact_config = ConfigOf(PushCodecConfig::kTopK);
  const std::vector<float> exact = Decode(exact_config, Encode(exact_config, elements), kSegment);
  float largest = 0;
  for (const float x : exact) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < kSegment; ++i) {
    ASSERT_LE(std::abs(decoded[i] - exact[i]), 0.501f * largest / 127) << i;
  }
}

TEST(TopKInt8, TheLargestNumberStaysFinite) {
  const std::vector<float> elements = {std::numeric_limits<float>::max(), -1.0f};
  const PushCodecConfig config = ConfigOf(PushCodecConfig::kTopKInt8);
  const std::vector<float> decoded = Decode(config, Encode(config, elements), 2);
  EXPECT_GT(decoded[0], 0.999f * elements[0]);
}

TEST(RandomK, DrawsEveryElementAlikeAndOneOfEachStratum) {
  PushCodecConfig config = ConfigOf(PushCodecConfig::kRandomK);
  config.mutable_random_k()->set_density(0.25);
  constexpr size_t kElements = 102;  // 26 strata of 3 or 4
  constexpr int kClocks = 20000;
  const std::vector<float> ones(kElements, 1.0f);
  std::vector<int> drawn(kElements, 0);
  for (uint64_t clock = 0; clock < kClocks; ++clock) {
    const auto decoded = Decode(config, Encode(config, ones, {.clock = clock}), kElements);
    EXPECT_EQ(std::count(decoded.begin(), decoded.end(), 1.0f), 26);
    for (size_t i = 0; i < kElements; ++i) drawn[i] += decoded[i] == 1.0f ? 1 : 0;
  }
  for (size_t stratum = 0; stratum < 26; ++stratum) {
    const size_t begin = stratum * kElements / 26;
    const size_t end = (stratum + 1) * kElements / 26;
    const double p = 1.0 / static_cast<double>(end - begin);
    const double deviation = std::sqrt(kClocks * p * (1 - p));
    for (size_t i = begin; i < end; ++i) EXPECT_NEAR(drawn[i], kClocks * p, 5 * deviation) << i;
  }
}

TEST(RandomK, DrawsAnewForEveryPartOfTheKey) {
  const PushCodecConfig config = ConfigOf(PushCodecConfig::kRandomK);
  const std::vector<float> elements = NormalElements(10000, 4, 1.0f);
  std::set<std::vector<float>> decoded;
  for (const CodecKey key :
       {CodecKey{}, CodecKey{.seed = 1}, CodecKey{.seed = uint64_t{1} << 32}, CodecKey{.block = 1},
        CodecKey{.segment = 1}, CodecKey{.virtual_worker = 1}, CodecKey{.clock = 1},
        CodecKey{.clock = uint64_t{1} << 32}}) {
    decoded.insert(Decode(config, Encode(config, elements, key), elements.size()));
  }
  EXPECT_EQ(decoded.size(), 8u);
}

// An element is drawn with probability 1/s and sent s times as large, where s is the number of
// elements in its stratum: variance (s - 1) x^2.
TEST(RandomK, IsUnbiasedWithoutErrorFeedback) {
  PushCodecConfig config = ConfigOf(PushCodecConfig::kRandomK);
  config.set_error_feedback(false);
  config.mutable_random_k()->set_density(0.15);
  constexpr size_t kElements = 1003;  // 150 strata of 6 or 7
  constexpr int kClocks = 5000;
  const std::vector<float> elements = NormalElements(kElements, 5, 1.0f);
  std::vector<double> sum(kElements, 0.0);
  for (uint64_t clock = 0; clock < kClocks; ++clock) {
    const auto decoded = Decode(config, Encode(config, elements, {.clock = clock}), kElements);
    for (size_t i = 0; i < kElements; ++i) sum[i] += decoded[i];
  }
  for (size_t i = 0; i < kElements; ++i) {
    const double deviation = std::abs(elements[i]) * std::sqrt(6.0 / kClocks);
    EXPECT_NEAR(sum[i] / kClocks, elements[i], 5 * deviation) << i;
  }
}

TEST(RandomK, EncodesNothingThatOverflowsScaled) {
  PushCodecConfig config = ConfigOf(PushCodecConfig::kRandomK);
  config.set_error_feedback(false);
  EXPECT_TRUE(Encode(config, std::vector<float>(1000, 3e38f)).empty());
}

}  // namespace
}  // namespace tug
