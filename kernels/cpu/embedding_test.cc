// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.h"

#include "gtest/gtest.h"
#include "kernels/reference/embedding_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {
namespace {

constexpr int32_t kVocab = 19;

template <typename T>
struct Result {
  std::vector<T> out;
  std::vector<float> dwte, dwpe;
};

template <typename W, typename T>
Result<T> RunKernel(int threads, int64_t samples, int64_t seq, int64_t width) {
  ThreadPool pool(threads);
  const auto tokens = RandomIndices(samples * seq, 1, kVocab);
  const auto wte = As<W>(RandomFloats(kVocab * width, 2));
  const auto wpe = As<W>(RandomFloats(seq * width, 3));
  const auto dout = As<T>(RandomFloats(samples * seq * width, 4));
  Result<T> r{std::vector<T>(samples * seq * width), RandomFloats(kVocab * width, 5),
              RandomFloats(seq * width, 6)};
  EmbeddingForward<W, T>(
      pool, {samples, seq, width, tokens.data(), wte.data(), wpe.data(), r.out.data()});
  EmbeddingBackward<T>(
      pool, {samples, seq, width, tokens.data(), dout.data(), r.dwte.data(), r.dwpe.data()});
  return r;
}

template <typename T>
std::vector<float> Widened(const std::vector<T>& values) {
  const auto wide = ToDouble(values);
  return {wide.begin(), wide.end()};
}

// Each row is summed in token order, as in the reference; so the FP32 bits are equal.
template <typename W, typename T>
void ExpectMatchesReference(int64_t samples, int64_t seq, int64_t width) {
  SCOPED_TRACE(testing::Message() << samples << " x " << seq << " x " << width);
  const auto tokens = RandomIndices(samples * seq, 1, kVocab);
  const auto wte = Widened(As<W>(RandomFloats(kVocab * width, 2)));
  const auto wpe = Widened(As<W>(RandomFloats(seq * width, 3)));
  const auto dout = Widened(As<T>(RandomFloats(samples * seq * width, 4)));
  Result<float> expected{std::vector<float>(samples * seq * width), RandomFloats(kVocab * width, 5),
                         RandomFloats(seq * width, 6)};
  EmbeddingForwardRef<float>(
      {samples, seq, width, tokens.data(), wte.data(), wpe.data(), expected.out.data()});
  EmbeddingBackwardRef<float>({samples, seq, width, tokens.data(), dout.data(),
                               expected.dwte.data(), expected.dwpe.data()});
  for (const int threads : {1, 2, 3}) {
    const auto r = RunKernel<W, T>(threads, samples, seq, width);
    ExpectSameBits(r.out, As<T>(expected.out));
    ExpectSameBits(r.dwte, expected.dwte);
    ExpectSameBits(r.dwpe, expected.dwpe);
  }
}

template <typename W, typename T>
void ExpectMatchesReferenceAtEverySize() {
  for (const int64_t size : kTestSizes) {
    ExpectMatchesReference<W, T>(2, 5, size);
    ExpectMatchesReference<W, T>(2, size, 7);
    ExpectMatchesReference<W, T>(size, 2, 7);
  }
  ExpectMatchesReference<W, T>(4, 128, 384);
}

TEST(Embedding, HasTheBitsOfTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  ExpectMatchesReferenceAtEverySize<float, float>();
  ExpectMatchesReferenceAtEverySize<float, Bf16>();
  ExpectMatchesReferenceAtEverySize<Bf16, Bf16>();
}

TEST(Embedding, ReferenceGradientsAreFiniteDifferences) {
  const int64_t samples = 2, seq = 3, width = 2;
  const std::vector<int32_t> tokens = {0, 1, 1, 2, 0, 1};
  const auto wte = ToDouble(RandomFloats(3 * width, 1));
  const auto wpe = ToDouble(RandomFloats(seq * width, 2));
  const auto w = ToDouble(RandomFloats(samples * seq * width, 3));
  const auto loss = [&](const auto& wte_at, const auto& wpe_at) {
    std::vector<double> out(samples * seq * width);
    EmbeddingForwardRef<double>(
        {samples, seq, width, tokens.data(), wte_at.data(), wpe_at.data(), out.data()});
    return Dot(w, out);
  };
  std::vector<double> dwte(wte.size()), dwpe(wpe.size());
  EmbeddingBackwardRef<double>(
      {samples, seq, width, tokens.data(), w.data(), dwte.data(), dwpe.data()});
  ExpectClose(dwte, FiniteDifferences(wte, [&](const auto& at) { return loss(at, wpe); }), 1e-8,
              1e-8);
  ExpectClose(dwpe, FiniteDifferences(wpe, [&](const auto& at) { return loss(wte, at); }), 1e-8,
              1e-8);
}

}  // namespace
}  // namespace tug::kernels
