// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_DENSE_TEST_SUPPORT_H_
#define TUG_COMPRESSION_DENSE_DENSE_TEST_SUPPORT_H_

// Common parts of the tests of codecs that send every element.

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "compression/codec.h"
#include "compression/dense/dither.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug {

inline constexpr CodecKey kTestKey{
    .seed = 7, .block = 1, .segment = 2, .virtual_worker = 3, .clock = 4};

// Random word that a codec draws for an element of the segment.
inline uint32_t DrawRef(const CodecKey& key, size_t element) {
  const Dither dither(key);
  const auto lane = static_cast<int64_t>(element % 16);
  return Philox4x32(dither.Counter(static_cast<int64_t>(element / 64), lane),
                    dither.philox_key())[element / 16 % 4];
}

// Lengths at and around the end of a group, a word of bits and a vector.
inline constexpr int64_t kDenseTestSizes[] = {1,   2,   31,  32,   33,   63,   64,   65,
                                              511, 512, 513, 1023, 4096, 5000, 16411};

// Elements of magnitudes up to 1, most of them much smaller.
inline std::vector<float> TestGradient(int64_t n, uint32_t seed) {
  auto x = kernels::RandomFloats(n, seed);
  for (float& value : x) value = value * value * value;
  return x;
}

// Encoding of x; empty if there is none.
inline std::vector<std::byte> Encoding(const SegmentCodec& codec, const std::vector<float>& x,
                                       const CodecKey& key = kTestKey) {
  CodecScratch scratch;
  std::vector<std::byte> out(codec.MaxEncodedBytes(x.size()));
  out.resize(codec.Encode(key, x, out, scratch));
  return out;
}

inline std::vector<float> Decoded(const SegmentCodec& codec, const std::vector<std::byte>& encoding,
                                  size_t n) {
  std::vector<float> x(n, 1.0f);
  EXPECT_TRUE(codec.Decode(encoding, DecodeTo::kStore, x));
  return x;
}

// Calls `check` with each instruction set that this machine has, from the best to the plainest.
inline void OnEveryInstructionSet(const std::function<void()>& check) {
  const auto use = [](int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    use(target);
    check();
  }
  use(0);
}

// Expects the same decoded numbers whether they are stored, added or subtracted.
inline void ExpectDecodesAlike(const SegmentCodec& codec, const std::vector<float>& x) {
  const auto encoding = Encoding(codec, x);
  const auto stored = Decoded(codec, encoding, x.size());
  const auto before = kernels::RandomFloats(static_cast<int64_t>(x.size()), 99);
  auto added = before, subtracted = before;
  ASSERT_TRUE(codec.Decode(encoding, DecodeTo::kAdd, added));
  ASSERT_TRUE(codec.Decode(encoding, DecodeTo::kSubtract, subtracted));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(added[i], before[i] + stored[i]) << i;
    ASSERT_EQ(subtracted[i], before[i] - stored[i]) << i;
  }
}

// Compares the codec's own error feedback with codec.cc's three passes: to the bit, over several
// steps, and with a residual that overflows.
inline void ExpectResidualAsInThreePasses(const SegmentCodec& codec, int64_t n) {
  CodecScratch scratch;
  std::vector<float> residual(static_cast<size_t>(n)), expected = residual;
  std::vector<std::byte> out(codec.MaxEncodedBytes(residual.size())), expected_out = out;
  for (uint32_t step = 0; step < 4; ++step) {
    auto x = TestGradient(n, step);
    if (step == 2) {
      x.back() = residual.back() = expected.back() = std::numeric_limits<float>::max();
    }
    const size_t bytes = codec.EncodeWithResidual(kTestKey, x, residual, out, scratch);
    ASSERT_EQ(bytes,
              codec.SegmentCodec::EncodeWithResidual(kTestKey, x, expected, expected_out, scratch));
    ASSERT_GT(bytes, 0u);
    ASSERT_EQ(out, expected_out);
    kernels::ExpectSameBits(residual, expected);
  }
}

// Expects an element that is not finite, at any place, to give no encoding and a residual of zeros.
inline void ExpectEncodesOnlyFinite(const SegmentCodec& codec, int64_t n) {
  using Limits = std::numeric_limits<float>;
  CodecScratch scratch;
  std::vector<std::byte> out(codec.MaxEncodedBytes(static_cast<size_t>(n)));
  for (const float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      auto x = TestGradient(n, 1);
      x[at] = bad;
      EXPECT_TRUE(Encoding(codec, x).empty()) << bad << " at " << at;
      auto residual = TestGradient(n, 2);
      EXPECT_EQ(codec.EncodeWithResidual(kTestKey, x, residual, out, scratch), 0u);
      EXPECT_EQ(residual, std::vector<float>(x.size(), 0.0f));
    }
  }
}

// Expects numbers at the limits of FP32 to be encoded, and to decode to finite numbers.
inline void ExpectEncodesExtremes(const SegmentCodec& codec) {
  using Limits = std::numeric_limits<float>;
  for (const float value : {Limits::max(), Limits::min(), Limits::denorm_min(), 0.0f}) {
    for (const int64_t n : {1, 64, 700}) {
      std::vector<float> x(static_cast<size_t>(n), value);
      x.back() = -value;
      const auto encoding = Encoding(codec, x);
      ASSERT_FALSE(encoding.empty()) << value << " of " << n;
      for (const float decoded : Decoded(codec, encoding, x.size())) {
        EXPECT_TRUE(std::isfinite(decoded)) << value;
      }
    }
  }
}

// Expects bytes of another length to be refused.
inline void ExpectRefusesOtherLengths(const SegmentCodec& codec, int64_t n) {
  std::vector<float> x = TestGradient(n, 1), to(x.size());
  auto encoding = Encoding(codec, x);
  encoding.push_back(std::byte{0});
  EXPECT_FALSE(codec.Decode(encoding, DecodeTo::kStore, to));
  encoding.resize(encoding.size() - 2);
  EXPECT_FALSE(codec.Decode(encoding, DecodeTo::kStore, to));
  EXPECT_FALSE(codec.Decode({}, DecodeTo::kStore, to));
}

// Expects elements to be right on average. `gap(i)`: distance of the two numbers that element i can
// become. The average of N draws has a standard deviation of at most gap / 2 / sqrt(N); five of
// these are allowed.
inline void ExpectUnbiased(const SegmentCodec& codec, const std::vector<float>& x,
                           const std::function<double(size_t)>& gap) {
  constexpr int kDraws = 2000;
  std::vector<double> sums(x.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    CodecKey key = kTestKey;
    key.clock = static_cast<uint64_t>(draw);
    const auto decoded = Decoded(codec, Encoding(codec, x, key), x.size());
    for (size_t i = 0; i < x.size(); ++i) sums[i] += decoded[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(sums[i] / kDraws, x[i], 5 * gap(i) / 2 / std::sqrt(kDraws) + 1e-7) << i;
  }
}

// Expects the same bytes for the same key, and others for a key that differs anywhere.
inline void ExpectDrawsByKey(const SegmentCodec& codec) {
  const auto x = TestGradient(1000, 1);
  const auto encoding = Encoding(codec, x);
  EXPECT_EQ(Encoding(codec, x), encoding);
  std::vector<CodecKey> others(6, kTestKey);
  others[0].seed += 1;
  others[1].block += 1;
  others[2].segment += 1;
  others[3].virtual_worker += 1;
  others[4].clock += 1;
  others[5].clock += uint64_t{1} << 32;
  for (const CodecKey& other : others) EXPECT_NE(Encoding(codec, x, other), encoding);
}

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_DENSE_TEST_SUPPORT_H_
