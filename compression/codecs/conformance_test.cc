// SPDX-License-Identifier: Apache-2.0
// Requirements on every codec (codec.h), for every row of codecs.cc.

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "compression/codecs/codec_test_support.h"
#include "config/push_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr size_t kSizes[] = {1,   2,   3,   31,  32,  33,   63,   64,   65,   255,
                             256, 257, 511, 512, 513, 1023, 4095, 4096, 4097, 65536 + 7};
constexpr std::byte kGuard{0xA5};
constexpr size_t kGuardBytes = 64;
constexpr float kUnit = 0x1p-24f;  // relative error of one FP32 operation

struct Input {
  const char* name;
  std::vector<float> elements;
};

// Inputs of `n` elements of every kind that may break a codec. All finite.
std::vector<Input> Inputs(size_t n) {
  std::vector<Input> inputs;
  inputs.push_back({"normal", NormalElements(n, 1, 0.01f)});
  inputs.push_back({"zeros", std::vector<float>(n, 0.0f)});
  inputs.push_back({"negative zeros", std::vector<float>(n, -0.0f)});
  inputs.push_back({"alike", std::vector<float>(n, -0.5f)});
  inputs.push_back({"denormals", NormalElements(n, 2, 1e-41f)});
  inputs.push_back({"smallest", std::vector<float>(n, std::numeric_limits<float>::denorm_min())});
  std::vector<float> huge = NormalElements(n, 3, 1.0f);
  for (float& x : huge) x = std::copysign(1e38f, x);
  inputs.push_back({"huge", std::move(huge)});
  std::vector<float> mixed = NormalElements(n, 4, 1.0f);
  for (size_t i = 0; i < n; ++i) mixed[i] *= std::ldexp(1.0f, static_cast<int>(i * 37 % 90) - 60);
  for (size_t i = 0; i < n; i += 5) mixed[i] = i % 2 == 0 ? 0.0f : -0.0f;
  inputs.push_back({"mixed", std::move(mixed)});
  std::vector<float> outlier = NormalElements(n, 5, 1e-6f);
  outlier[n / 2] = -1e6f;
  inputs.push_back({"outlier", std::move(outlier)});
  return inputs;
}

CodecKey KeyOf(uint64_t clock) {
  return {.seed = 7, .block = 3, .segment = 2, .virtual_worker = 1, .clock = clock};
}

class Conformance : public ::testing::TestWithParam<const CodecRow*> {
 protected:
  const CodecRow& row() const { return *GetParam(); }

  std::vector<std::byte> Encode(std::span<const float> elements, uint64_t clock) {
    std::vector<std::byte> out(codec_->MaxEncodedBytes(elements.size()));
    out.resize(codec_->Encode(KeyOf(clock), elements, out, scratch_));
    return out;
  }
  std::vector<float> Decode(std::span<const std::byte> encoded, size_t n) {
    std::vector<float> elements(n, std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(DecoderOf(row().id)->Decode(encoded, DecodeTo::kStore, elements));
    return elements;
  }

  const std::unique_ptr<const SegmentCodec> codec_ = DefaultCodec(row());
  CodecScratch scratch_;
};

TEST_P(Conformance, IsFoundByTheFieldOfTheJob) {
  const auto* field = PushCodecConfig::descriptor()->FindFieldByNumber(static_cast<int>(row().id));
  ASSERT_NE(field, nullptr);
  EXPECT_EQ(field->name(), row().name);
  ASSERT_NE(field->real_containing_oneof(), nullptr);
  EXPECT_EQ(field->real_containing_oneof()->name(), "codec");
  EXPECT_EQ(FindCodec(row().id), &row());
  EXPECT_NE(DecoderOf(row().id), nullptr);
  EXPECT_NE(MakeCodec(DefaultConfig(row())), nullptr);
}

TEST_P(Conformance, EncodesAnythingFiniteWithinItsBoundAtAnyAddress) {
  for (const size_t n : kSizes) {
    const size_t max = codec_->MaxEncodedBytes(n);
    for (const Input& input : Inputs(n)) {
      std::optional<std::vector<std::byte>> first;
      for (const size_t offset : {0, 1}) {
        std::vector<std::byte> buffer(kGuardBytes + offset + max + kGuardBytes, kGuard);
        const auto out = std::span(buffer).subspan(kGuardBytes + offset, max);
        const size_t bytes = codec_->Encode(KeyOf(1), input.elements, out, scratch_);
        ASSERT_GE(bytes, 1u) << input.name << " " << n;
        ASSERT_LE(bytes, max) << input.name << " " << n;
        const auto is_guard = [](std::byte b) { return b == kGuard; };
        ASSERT_TRUE(std::all_of(buffer.data(), out.data(), is_guard)) << input.name << " " << n;
        ASSERT_TRUE(std::all_of(out.data() + max, buffer.data() + buffer.size(), is_guard))
            << input.name << " " << n;
        const std::vector<std::byte> encoded(out.begin(),
                                             out.begin() + static_cast<ptrdiff_t>(bytes));
        if (!first.has_value()) first = encoded;
        ASSERT_EQ(encoded, *first) << "same key, same elements: " << input.name << " " << n;
        ASSERT_EQ(BitsOf(Decode(out.first(bytes), n)), BitsOf(Decode(*first, n)));
      }
    }
  }
}

TEST_P(Conformance, DecodesSameValuesForStoreAddAndSubtract) {
  const SegmentCodec& decoder = *DecoderOf(row().id);
  for (const size_t n : kSizes) {
    for (const Input& input : Inputs(n)) {
      const std::vector<std::byte> encoded = Encode(input.elements, 1);
      const std::vector<float> stored = Decode(encoded, n);
      // Added to zero, d stays unchanged. A dense codec may keep the sign of a zero.
      std::vector<float> from_zero(n, row().sparse ? 0.0f : -0.0f);
      ASSERT_TRUE(decoder.Decode(encoded, DecodeTo::kAdd, from_zero));
      ASSERT_EQ(BitsOf(from_zero), BitsOf(stored)) << input.name << " " << n;

      const std::vector<float> before = NormalElements(n, 9, 0.02f);
      std::vector<float> expected_sum(n);
      std::vector<float> expected_rest(n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_TRUE(std::isfinite(stored[i])) << input.name << " " << n << " at " << i;
        expected_sum[i] = before[i] + stored[i];
        expected_rest[i] = before[i] - stored[i];
      }
      std::vector<float> sum = before;
      ASSERT_TRUE(decoder.Decode(encoded, DecodeTo::kAdd, sum));
      ASSERT_EQ(BitsOf(sum), BitsOf(expected_sum)) << input.name << " " << n;
      std::vector<float> rest = before;
      ASSERT_TRUE(decoder.Decode(encoded, DecodeTo::kSubtract, rest));
      ASSERT_EQ(BitsOf(rest), BitsOf(expected_rest)) << input.name << " " << n;
    }
  }
}

// -0 would make 0 + d and d differ.
using SparseConformance = Conformance;
TEST_P(SparseConformance, StoresNoNegativeZero) {
  for (const size_t n : kSizes) {
    for (const Input& input : Inputs(n)) {
      for (const uint32_t bits : BitsOf(Decode(Encode(input.elements, 1), n))) {
        ASSERT_NE(bits, 0x80000000u) << input.name << " " << n;
      }
    }
  }
}

TEST_P(Conformance, ZerosDecodeToZeros) {
  for (const size_t n : kSizes) {
    const std::vector<float> zeros(n, 0.0f);
    EXPECT_EQ(Decode(Encode(zeros, 1), n), zeros);
    EXPECT_EQ(Decode(Encode(std::vector<float>(n, -0.0f), 1), n), zeros);
  }
}

// Required for error feedback to be bounded (Karimireddy et al. 2019, assumption A).
using BiasedConformance = Conformance;
TEST_P(BiasedConformance, LeavesOutLessThanThereIs) {
  for (const size_t n : kSizes) {
    for (const Input& input : Inputs(n)) {
      const std::vector<float> decoded = Decode(Encode(input.elements, 1), n);
      double rest = 0;
      float largest = 0;
      for (size_t i = 0; i < n; ++i) {
        const double difference = static_cast<double>(input.elements[i]) - decoded[i];
        rest += difference * difference;
        largest = std::max(largest, std::abs(input.elements[i]));
      }
      const double all = SumOfSquaresOf(input.elements);
      EXPECT_LE(rest, all) << input.name << " " << n;
      // For denormals there may be no finer number to send. random_k may draw zeros only.
      if (largest >= std::numeric_limits<float>::min() && row().id != PushCodecConfig::kRandomK) {
        EXPECT_LT(rest, all) << input.name << " " << n;
      }
    }
  }
}

// The mean over T clocks misses x by the variance over T, summed over the elements; both sides are
// measured. The squared miss of n elements must be within 6 deviations of that (sqrt(2 / n) each,
// if they are independent); along x, which reveals a factor, also within 6.
using UnbiasedConformance = Conformance;
TEST_P(UnbiasedConformance, IsRightOnAverage) {
  constexpr int kClocks = 1000;
  for (const size_t n : {size_t{33}, size_t{1023}, size_t{4097}}) {
    const std::vector<float> x = NormalElements(n, 11, 0.01f);
    std::vector<double> sum(n, 0.0);
    std::vector<double> squares(n, 0.0);
    for (int clock = 0; clock < kClocks; ++clock) {
      const std::vector<float> d = Decode(Encode(x, static_cast<uint64_t>(clock)), n);
      for (size_t i = 0; i < n; ++i) {
        const double miss = static_cast<double>(d[i]) - x[i];
        sum[i] += miss;
        squares[i] += miss * miss;
      }
    }
    double missed = 0;
    double expected = 0;
    double along = 0;
    double along_variance = 0;
    for (size_t i = 0; i < n; ++i) {
      const double mean = sum[i] / kClocks;
      const double variance = squares[i] / kClocks / kClocks;  // of the mean
      missed += mean * mean;
      expected += variance;
      along += mean * x[i];
      along_variance += variance * x[i] * x[i];
    }
    const double rounding = kUnit * kUnit * SumOfSquaresOf(x);
    EXPECT_LE(missed, expected * (1 + 6 * std::sqrt(2.0 / static_cast<double>(n))) + rounding) << n;
    EXPECT_LE(std::abs(along), 6 * std::sqrt(along_variance) + kUnit * SumOfSquaresOf(x)) << n;
  }
}

TEST_P(BiasedConformance, ErrorFeedbackLosesNothing) {
  // dgc feeds back velocities: see dgc_test.cc.
  if (row().id == PushCodecConfig::kDgc) return;
  for (const size_t n : kSizes) {
    std::vector<float> residual(n + codec_->StateFloats(n), 0.0f);
    std::vector<double> lost(n, 0.0);   // inputs minus what was decoded
    std::vector<double> bound(n, 0.0);  // two roundings per step: of the sum, and of the remainder
    std::vector<std::byte> out(codec_->MaxEncodedBytes(n));
    for (uint64_t clock = 0; clock < 20; ++clock) {
      const std::vector<float> elements = NormalElements(n, 100 + clock, 0.01f);
      for (size_t i = 0; i < n; ++i) {
        bound[i] += 1.01 * kUnit * (std::abs(elements[i]) + std::abs(residual[i]));
        lost[i] += elements[i];
      }
      const size_t bytes =
          codec_->EncodeWithResidual(KeyOf(clock), elements, residual, out, scratch_);
      ASSERT_GE(bytes, 1u);
      const std::vector<float> decoded = Decode(std::span(out).first(bytes), n);
      for (size_t i = 0; i < n; ++i) {
        bound[i] += 1.01 * kUnit * std::abs(residual[i]);
        lost[i] -= decoded[i];
      }
    }
    for (size_t i = 0; i < n; ++i) {
      ASSERT_LE(std::abs(lost[i] - residual[i]), bound[i]) << n << " at " << i;
    }
  }
}

// Not for codecs whose result depends on a state besides the residual.
TEST_P(Conformance, ErrorFeedbackHasTheBitsOfTheThreePasses) {
  for (const size_t n : kSizes) {
    if (codec_->StateFloats(n) > 0) continue;
    for (const Input& input : Inputs(n)) {
      for (const float scale : {0.0f, 0.01f, 3e38f}) {  // the last: sums overflow
        std::vector<float> fast = NormalElements(n, 13, 1.0f);
        for (float& r : fast) r = scale > 1 ? std::copysign(scale, r) : r * scale;
        std::vector<float> plain = fast;
        const size_t max = codec_->MaxEncodedBytes(n);
        std::vector<std::byte> fast_out(max);
        std::vector<std::byte> plain_out(max);
        for (uint64_t clock = 0; clock < 2; ++clock) {
          const size_t fast_bytes =
              codec_->EncodeWithResidual(KeyOf(clock), input.elements, fast, fast_out, scratch_);
          const size_t plain_bytes = codec_->SegmentCodec::EncodeWithResidual(
              KeyOf(clock), input.elements, plain, plain_out, scratch_);
          ASSERT_EQ(fast_bytes, plain_bytes) << input.name << " " << n << " " << scale;
          ASSERT_EQ(std::memcmp(fast_out.data(), plain_out.data(), fast_bytes), 0)
              << input.name << " " << n << " " << scale;
          ASSERT_EQ(BitsOf(fast), BitsOf(plain)) << input.name << " " << n << " " << scale;
        }
      }
    }
  }
}

// The residual and state may be anything, since they are also read from files.
TEST_P(Conformance, AResidualThatOverflowsIsGivenUpWithAllThatIsKept) {
  for (const size_t n : kSizes) {
    const std::vector<float> elements(n, 1e38f);
    std::vector<float> fresh(n + codec_->StateFloats(n), 0.0f);
    std::vector<std::byte> out(codec_->MaxEncodedBytes(n)), expected_out = out;
    const size_t expected =
        codec_->EncodeWithResidual(KeyOf(1), elements, fresh, expected_out, scratch_);
    for (const float bad :
         {std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> residual(fresh.size(), bad);
      const size_t bytes = codec_->EncodeWithResidual(KeyOf(1), elements, residual, out, scratch_);
      ASSERT_EQ(bytes, expected) << n << " " << bad;
      ASSERT_EQ(std::memcmp(out.data(), expected_out.data(), bytes), 0) << n << " " << bad;
      ASSERT_EQ(BitsOf(residual), BitsOf(fresh)) << n << " " << bad;
    }
  }
}

TEST_P(Conformance, EncodesNothingThatIsNotFinite) {
  for (const size_t n : kSizes) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      for (const size_t at : {size_t{0}, n / 2, n - 1}) {
        std::vector<float> elements = NormalElements(n, 17, 0.01f);
        elements[at] = bad;
        std::vector<std::byte> out(codec_->MaxEncodedBytes(n));
        EXPECT_EQ(codec_->Encode(KeyOf(1), elements, out, scratch_), 0u) << n << " at " << at;
        std::vector<float> residual = NormalElements(n + codec_->StateFloats(n), 19, 0.01f);
        EXPECT_EQ(codec_->EncodeWithResidual(KeyOf(1), elements, residual, out, scratch_), 0u);
        EXPECT_EQ(residual, std::vector<float>(residual.size(), 0.0f)) << n << " at " << at;
      }
    }
  }
}

// Rounding may give infinity: then there is no encoding, and no residual.
TEST_P(Conformance, TheLargestNumbersEndNothing) {
  for (const size_t n : kSizes) {
    std::vector<float> elements(n, std::numeric_limits<float>::max());
    elements[n / 2] = std::numeric_limits<float>::lowest();
    std::vector<std::byte> out(codec_->MaxEncodedBytes(n));
    size_t bytes = codec_->Encode(KeyOf(1), elements, out, scratch_);
    if (bytes > 0) Decode(std::span(out).first(bytes), n);
    const bool encodes = bytes > 0;
    std::vector<float> residual(n + codec_->StateFloats(n), 0.0f);
    bytes = codec_->EncodeWithResidual(KeyOf(1), elements, residual, out, scratch_);
    EXPECT_EQ(bytes > 0, encodes) << n;
    if (bytes > 0) Decode(std::span(out).first(bytes), n);
    for (const float r : residual) ASSERT_TRUE(encodes ? std::isfinite(r) : r == 0.0f) << n;
  }
}

TEST(Codecs, HaveARowForEveryCodecOfTheJob) {
  std::vector<std::string> missing;
  const auto* codecs = PushCodecConfig::descriptor()->FindOneofByName("codec");
  for (int i = 0; i < codecs->field_count(); ++i) {
    const auto* field = codecs->field(i);
    if (field->name() == "auto") continue;  // chooses among them, by segment and link
    if (FindCodec(static_cast<uint32_t>(field->number())) == nullptr) {
      missing.push_back(field->name());
    }
  }
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

std::vector<const CodecRow*> Rows(bool (*chosen)(const CodecRow& row)) {
  std::vector<const CodecRow*> rows;
  for (const CodecRow& row : Codecs()) {
    if (chosen(row)) rows.push_back(&row);
  }
  return rows;
}
bool All(const CodecRow& /*row*/) { return true; }
bool Sparse(const CodecRow& row) { return row.sparse; }
bool Biased(const CodecRow& row) { return !IsUnbiased(row.id); }
bool Unbiased(const CodecRow& row) { return IsUnbiased(row.id); }

std::string NameOf(const ::testing::TestParamInfo<const CodecRow*>& info) {
  return info.param->name;
}

INSTANTIATE_TEST_SUITE_P(Codecs, Conformance, ::testing::ValuesIn(Rows(All)), NameOf);
INSTANTIATE_TEST_SUITE_P(Codecs, SparseConformance, ::testing::ValuesIn(Rows(Sparse)), NameOf);
INSTANTIATE_TEST_SUITE_P(Codecs, BiasedConformance, ::testing::ValuesIn(Rows(Biased)), NameOf);
INSTANTIATE_TEST_SUITE_P(Codecs, UnbiasedConformance, ::testing::ValuesIn(Rows(Unbiased)), NameOf);

}  // namespace
}  // namespace tug
