// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/embedding_cuda.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/embedding_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

struct Shape {
  int64_t samples;
  int64_t seq;
  int64_t width;
  int32_t vocab;
};

struct Gradients {
  std::vector<float> dwte, dwpe;
};

template <typename T>
std::vector<float> Widened(const std::vector<T>& values) {
  const auto wide = ToDouble(values);
  return {wide.begin(), wide.end()};
}

class EmbeddingCuda : public CudaTest {
 protected:
  template <typename T>
  Gradients RunBackward(const Shape& shape, const std::vector<int32_t>& tokens) {
    const OnDevice tokens_gpu(tokens, stream());
    const OnDevice dout(As<T>(RandomFloats(shape.samples * shape.seq * shape.width, 4)), stream());
    const OnDevice dwte(RandomFloats(shape.vocab * shape.width, 5), stream());
    const OnDevice dwpe(RandomFloats(shape.seq * shape.width, 6), stream());
    const absl::Status status =
        EmbeddingBackward<T>({shape.samples, shape.seq, shape.width, tokens_gpu.data(), dout.data(),
                              dwte.data(), dwpe.data()},
                             stream());
    EXPECT_TRUE(status.ok()) << status;
    return {dwte.Read(), dwpe.Read()};
  }

  // Positions are summed in the order of samples, and the tokens of one window in order: FP32 bits
  // are equal. Otherwise c numbers below 1 are summed in FP32 in another order. Having mixed signs,
  // partial sums stay below 2 sqrt(c), so errors stay below 2 c sqrt(c) 2^-24.
  template <typename T>
  void ExpectBackwardMatchesReference(const Shape& shape, const std::vector<int32_t>& tokens) {
    const int64_t rows = shape.samples * shape.seq;
    const auto dout = Widened(As<T>(RandomFloats(rows * shape.width, 4)));
    Gradients expected{RandomFloats(shape.vocab * shape.width, 5),
                       RandomFloats(shape.seq * shape.width, 6)};
    EmbeddingBackwardRef<float>({shape.samples, shape.seq, shape.width, tokens.data(), dout.data(),
                                 expected.dwte.data(), expected.dwpe.data()});
    const Gradients once = RunBackward<T>(shape, tokens);
    ExpectSameBits(once.dwpe, expected.dwpe);
    if (rows <= 32) {
      ExpectSameBits(once.dwte, expected.dwte);
    } else {
      std::vector<double> seen(shape.vocab);
      for (const int32_t token : tokens) seen[token] += 1;
      const double most = *std::max_element(seen.begin(), seen.end()) + 1;
      auto dwte = ToDouble(RandomFloats(shape.vocab * shape.width, 5));
      auto dwpe = ToDouble(RandomFloats(shape.seq * shape.width, 6));
      EmbeddingBackwardRef<double>({shape.samples, shape.seq, shape.width, tokens.data(),
                                    ToDouble(dout).data(), dwte.data(), dwpe.data()});
      ExpectClose(once.dwte, dwte, 2 * most * std::sqrt(most) * 0x1p-24, 0);
    }
  }

  template <typename W, typename T>
  void ExpectMatchesReference(const Shape& shape) {
    SCOPED_TRACE(testing::Message() << shape.samples << " x " << shape.seq << " x " << shape.width
                                    << " of " << shape.vocab);
    const int64_t rows = shape.samples * shape.seq;
    const auto tokens = RandomIndices(rows, 1, shape.vocab);
    const auto wte = As<W>(RandomFloats(shape.vocab * shape.width, 2));
    const auto wpe = As<W>(RandomFloats(shape.seq * shape.width, 3));
    std::vector<float> expected(rows * shape.width);
    EmbeddingForwardRef<float>({shape.samples, shape.seq, shape.width, tokens.data(),
                                Widened(wte).data(), Widened(wpe).data(), expected.data()});
    const OnDevice tokens_gpu(tokens, stream()), wte_gpu(wte, stream()), wpe_gpu(wpe, stream());
    const OnDevice out(std::vector<T>(expected.size()), stream());
    const absl::Status status =
        EmbeddingForward<W, T>({shape.samples, shape.seq, shape.width, tokens_gpu.data(),
                                wte_gpu.data(), wpe_gpu.data(), out.data()},
                               stream());
    ASSERT_TRUE(status.ok()) << status;
    ExpectSameBits(out.Read(), As<T>(expected));
    ExpectBackwardMatchesReference<T>(shape, tokens);
  }

  template <typename W, typename T>
  void ExpectMatchesReferenceAtEverySize() {
    for (const int64_t size : kTestSizes) {
      ExpectMatchesReference<W, T>({2, 5, size, 19});
      ExpectMatchesReference<W, T>({2, size, 7, 19});
      ExpectMatchesReference<W, T>({size, 2, 7, 19});
    }
    ExpectMatchesReference<W, T>({4, 32, 768, 97});
    ExpectMatchesReference<W, T>({3, 20, 64, 50257});
  }
};

TEST_F(EmbeddingCuda, MatchesTheReferenceInFp32) {
  ExpectMatchesReferenceAtEverySize<float, float>();
}
TEST_F(EmbeddingCuda, MatchesTheReferenceInBf16OfFp32Weights) {
  ExpectMatchesReferenceAtEverySize<float, Bf16>();
}
TEST_F(EmbeddingCuda, MatchesTheReferenceInBf16) {
  ExpectMatchesReferenceAtEverySize<Bf16, Bf16>();
}

// Several tiles to sort; runs of one row, of a few windows, and of more windows than a warp has
// lanes.
TEST_F(EmbeddingCuda, SumsATokenHoweverOftenItIsSeenAndRepeatsItsBits) {
  const Shape shape{5, 1000, 16, 3000};
  std::vector<int32_t> tokens = RandomIndices(5000, 7, shape.vocab);
  for (size_t i = 0; i < tokens.size(); i += 3) tokens[i] = 11;
  for (size_t i = 1; i < tokens.size(); i += 30) tokens[i] = 2999;
  ExpectBackwardMatchesReference<float>(shape, tokens);
  ExpectBackwardMatchesReference<Bf16>(shape, tokens);
  const Gradients once = RunBackward<Bf16>(shape, tokens);
  const Gradients again = RunBackward<Bf16>(shape, tokens);
  ExpectSameBits(again.dwte, once.dwte);
  ExpectSameBits(again.dwpe, once.dwpe);
  tokens.assign(tokens.size(), 1234);
  ExpectBackwardMatchesReference<float>(shape, tokens);
}

// Runs that begin, end and cover windows of 32 in all combinations.
TEST_F(EmbeddingCuda, SumsRunsWhereverWindowsCutThem) {
  for (const int64_t of_first : {1, 31, 32, 33, 65}) {
    for (const int64_t of_second : {1, 32, 33, 96}) {
      SCOPED_TRACE(testing::Message() << of_first << " and " << of_second);
      const int64_t rows = of_first + of_second + 3;
      std::vector<int32_t> tokens(rows, 5);
      for (int64_t i = 0; i < of_first; ++i) tokens[i * 7919 % rows] = 2;  // 7919 is a prime
      ExpectBackwardMatchesReference<float>({1, rows, 3, 6}, tokens);
    }
  }
}

}  // namespace
}  // namespace tug::kernels::cuda
