// SPDX-License-Identifier: Apache-2.0
#include "compression/low_rank/power_sgd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <vector>

#include "compression/codecs/codec_test_support.h"
#include "compression/dense/dense_test_support.h"
#include "compression/low_rank/low_rank_ref.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

PushCodecConfig ConfigOf(uint32_t rank, uint32_t columns) {
  PushCodecConfig config;
  config.mutable_power_sgd()->set_rank(rank);
  config.mutable_power_sgd()->set_columns(columns);
  return config;
}

// Matrix of this rank: a sum of products of random columns.
std::vector<float> MatrixOfRank(int64_t rank, const MatrixShape& shape, uint64_t seed) {
  const auto a = NormalElements(rank * shape.rows(), seed, 1.0f);
  const auto b = NormalElements(rank * shape.columns, seed + 1, 1.0f);
  std::vector<double> doubles_a(a.begin(), a.end()), doubles_b(b.begin(), b.end());
  const auto m = ExpandFactorsRef(shape, doubles_a, doubles_b, rank);
  return {m.begin(), m.end()};
}

double SquaredDistance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return sum;
}

// A codec and its residual and state of a segment.
struct Worker {
  Worker(const PushCodecConfig& config, size_t n)
      : codec(config), kept(n + codec.StateFloats(n)), out(codec.MaxEncodedBytes(n)), elements(n) {}

  std::span<float> residual() { return std::span(kept).first(elements); }
  std::span<float> q() { return std::span(kept).subspan(elements); }
  // Returns the pushed gradient.
  std::vector<float> Step(std::span<const float> gradient, uint64_t clock) {
    CodecScratch scratch;
    const size_t bytes =
        codec.EncodeWithResidual({.seed = 5, .clock = clock}, gradient, kept, out, scratch);
    EXPECT_EQ(bytes, out.size());
    std::vector<float> decoded(elements);
    EXPECT_TRUE(codec.Decode(std::span(out).first(bytes), DecodeTo::kStore, decoded));
    return decoded;
  }

  const PowerSgdSegmentCodec codec;
  std::vector<float> kept;
  std::vector<std::byte> out;
  const size_t elements;
};

TEST(PowerSgd, TakesTheBytesItPromises) {
  constexpr size_t kElements = 262144;
  const auto percent = [](uint32_t columns) {
    const PowerSgdSegmentCodec codec(ConfigOf(4, columns));
    return 100.0 * static_cast<double>(codec.MaxEncodedBytes(kElements)) / (4 * kElements);
  };
  EXPECT_NEAR(percent(128), 3.32, 0.01);
  EXPECT_NEAR(percent(512), 1.56, 0.01);
}

TEST(PowerSgd, IsExactForAMatrixOfNoHigherRank) {
  for (const MatrixShape shape : {MatrixShape{60 * 48, 48}, MatrixShape{61 * 33 - 5, 33}}) {
    for (const int64_t rank : {1, 2, 3}) {
      const auto m = MatrixOfRank(rank, shape, 7);
      const double all = SumOfSquaresOf(m);
      // A last row that is not full may add a direction.
      Worker worker(ConfigOf(4, static_cast<uint32_t>(shape.columns)), m.size());
      for (uint64_t clock = 0; clock < 4; ++clock) {
        EXPECT_LT(SquaredDistance(worker.Step(m, clock), m), 1e-11 * all) << rank << " " << clock;
        std::fill(worker.residual().begin(), worker.residual().end(), 0.0f);
      }
    }
  }
}

TEST(PowerSgd, IsNearTheReferenceFromTheSameQ) {
  const MatrixShape shape{47 * 32 - 9, 32};
  for (const int64_t rank : {1, 3, 5, 8}) {
    const auto m = NormalElements(shape.elements, 3, 0.01f);
    Worker worker(ConfigOf(static_cast<uint32_t>(rank), 32), m.size());
    const auto start = NormalElements(worker.q().size(), 4, 1 / std::sqrt(32.0f));
    std::copy(start.begin(), start.end(), worker.q().begin());
    auto p = TimesFactorRef(shape, m, std::vector<double>(start.begin(), start.end()), rank);
    OrthonormaliseRef(shape.rows(), rank, p);
    const auto q = TransposedTimesFactorRef(shape, m, p, rank);
    const auto expected = ExpandFactorsRef(shape, p, q, rank);
    const auto decoded = worker.Step(m, 0);
    for (size_t i = 0; i < m.size(); ++i) ASSERT_NEAR(decoded[i], expected[i], 1e-6) << i;
    for (int64_t k = 0; k < rank; ++k) {
      const float* const column = worker.q().data() + k * shape.columns;
      EXPECT_NEAR(Dot(column, column, shape.columns), 1, 1e-5);
      EXPECT_GT(
          std::inner_product(column, column + shape.columns, q.data() + k * shape.columns, 0.0), 0);
    }
  }
}

TEST(PowerSgd, SentPlusResidualEqualsGradient) {
  const size_t n = 5000;
  Worker worker(ConfigOf(4, 64), n);
  for (uint64_t clock = 0; clock < 5; ++clock) {
    const auto gradient = NormalElements(n, clock, 0.01f);
    std::vector<float> expected(n);
    for (size_t i = 0; i < n; ++i) expected[i] = gradient[i] + worker.residual()[i];
    const auto sent = worker.Step(gradient, clock);
    for (size_t i = 0; i < n; ++i) expected[i] -= sent[i];
    EXPECT_EQ(BitsOf(worker.residual()), BitsOf(expected));
  }
}

// Singular values 0.8^k, with vectors of a cosine transform: the best approximation of rank 4 is
// known.
TEST(PowerSgd, AWarmStartComesNearTheBestFactors) {
  constexpr int64_t kSize = 64;
  const auto basis = [](int64_t k, int64_t i) {
    const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / kSize);
    return scale * std::cos(std::numbers::pi * static_cast<double>(k) *
                            (static_cast<double>(i) + 0.5) / kSize);
  };
  std::vector<float> m(kSize * kSize);
  double best = 0;
  for (int64_t k = 0; k < kSize; ++k) {
    const double value = std::pow(0.8, static_cast<double>(k));
    if (k >= 4) best += value * value;
    for (int64_t i = 0; i < kSize * kSize; ++i) {
      m[i] += static_cast<float>(value * basis(k, i / kSize) * basis(k, i % kSize));
    }
  }
  Worker worker(ConfigOf(4, kSize), m.size());
  std::vector<double> missed;
  for (uint64_t clock = 0; clock < 20; ++clock) {
    missed.push_back(SquaredDistance(worker.Step(m, clock), m));
    std::fill(worker.residual().begin(), worker.residual().end(), 0.0f);
  }
  EXPECT_GT(missed.front(), 1.1 * best);
  EXPECT_LT(missed[3], missed.front());
  EXPECT_LT(missed.back(), 1.01 * best);
  EXPECT_GT(missed.back(), 0.999 * best);
}

TEST(PowerSgd, ADirectionThatWasNotThereIsDrawnAgain) {
  const MatrixShape shape{40 * 32, 32};
  Worker worker(ConfigOf(3, 32), shape.elements);
  worker.Step(MatrixOfRank(1, shape, 1), 0);
  EXPECT_EQ(std::count(worker.q().begin(), worker.q().end(), 0.0f), 2 * 32);
  std::fill(worker.residual().begin(), worker.residual().end(), 0.0f);
  const auto m = MatrixOfRank(3, shape, 3);
  EXPECT_LT(SquaredDistance(worker.Step(m, 1), m), 1e-9 * SumOfSquaresOf(m));
  const std::vector<float> before(worker.q().begin(), worker.q().end());
  std::fill(worker.residual().begin(), worker.residual().end(), 0.0f);
  worker.Step(std::vector<float>(m.size(), 0.0f), 2);
  EXPECT_EQ(std::vector<float>(worker.q().begin(), worker.q().end()), before)
      << "zeros teach nothing";
}

TEST(PowerSgd, SendsFewerColumnsOrTheElementsWhereFactorsAreNotSmaller) {
  constexpr size_t kColumns = 64;
  const PowerSgdSegmentCodec codec(ConfigOf(4, kColumns));
  CodecScratch scratch;
  uint32_t last_rank = 0;
  for (size_t n = 1; n < 1000; ++n) {
    const auto elements = NormalElements(n, n, 0.01f);
    const auto encoding = Encoding(codec, elements);
    ASSERT_EQ(encoding.size(), codec.MaxEncodedBytes(n)) << n;
    uint32_t rank = 0;
    std::memcpy(&rank, encoding.data(), sizeof(rank));
    ASSERT_EQ(codec.StateFloats(n), rank * kColumns) << n;
    if (rank == 0) {
      ASSERT_EQ(encoding.size(), 8 + n * sizeof(float));
      ASSERT_EQ(Decoded(codec, encoding, n), elements) << n;
    } else {
      ASSERT_LT(encoding.size(), 8 + n * sizeof(float));
    }
    ASSERT_EQ(rank == 0, n <= kColumns + 2) << n;  // rank 1 takes kColumns and two rows
    last_rank = rank;
  }
  EXPECT_EQ(last_rank, 4u);
}

TEST(PowerSgd, RefusesAHeadThatNobodyWrites) {
  constexpr size_t kElements = 40 * 32;
  const PowerSgdSegmentCodec codec(ConfigOf(3, 32));
  const auto x = NormalElements(kElements, 1, 0.01f);
  const auto good = Encoding(codec, x);
  std::vector<float> to(kElements);
  const auto decodes = [&](uint32_t rank, uint32_t columns, size_t bytes) {
    std::vector<std::byte> spoilt = good;
    spoilt.resize(bytes);
    std::memcpy(spoilt.data(), &rank, sizeof(rank));
    std::memcpy(spoilt.data() + sizeof(rank), &columns, sizeof(columns));
    return codec.Decode(spoilt, DecodeTo::kStore, to);
  };
  EXPECT_TRUE(decodes(3, 32, good.size()));
  EXPECT_TRUE(decodes(1, 32, 8 + 4 * (40 + 32)));
  EXPECT_TRUE(decodes(0, 2, 8 + 4 * kElements));
  EXPECT_FALSE(decodes(2, 32, good.size()));
  EXPECT_FALSE(decodes(65, 32, 8 + 65 * 4 * (40 + 32)));
  EXPECT_FALSE(decodes(0xFFFFFFFF, 32, good.size()));
  EXPECT_FALSE(decodes(1, 1, 8 + 4 * (kElements + 1)));
  EXPECT_FALSE(decodes(1, 0, good.size()));
  EXPECT_FALSE(decodes(1, 65537, 8 + 4 * (1 + 65537)));
  EXPECT_FALSE(decodes(1, 65536, 8 + 4 * (1 + 65536))) << "more than the segment";
  EXPECT_FALSE(decodes(0, 32, good.size()));
  ExpectRefusesOtherLengths(codec, kElements);
}

TEST(PowerSgd, DrawsByKeyWhatItDoesNotKnow) {
  ExpectDrawsByKey(PowerSgdSegmentCodec(ConfigOf(2, 16)));
}

TEST(PowerSgd, HasTheSameBitsOnEveryInstructionSet) {
  for (const uint32_t columns : {7, 33, 48, 128}) {
    const size_t n = 3001;
    std::vector<std::vector<uint32_t>> kept;
    std::vector<std::vector<std::byte>> encodings;
    OnEveryInstructionSet([&] {
      Worker worker(ConfigOf(5, columns), n);
      for (uint64_t clock = 0; clock < 4; ++clock) {
        worker.Step(NormalElements(n, clock, 0.01f), clock);
      }
      kept.push_back(BitsOf(worker.kept));
      encodings.push_back(worker.out);
      EXPECT_EQ(kept.back(), kept.front()) << columns;
      EXPECT_EQ(encodings.back(), encodings.front()) << columns;
    });
  }
}

}  // namespace
}  // namespace tug
