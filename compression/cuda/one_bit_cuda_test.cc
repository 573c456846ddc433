// SPDX-License-Identifier: Apache-2.0
#include "compression/cuda/one_bit_cuda.h"

#include <cmath>

#include "compression/cuda/segments_cuda_test_support.h"
#include "compression/dense/one_bit.h"

namespace tug::cuda {
namespace {

using OneBitCuda = CudaTest;

absl::Status Encode(const SegmentBatch& batch, const float* elements, float* residual,
                    std::byte* encodings, uint32_t* lengths, const Stream& stream) {
  return residual == nullptr
             ? EncodeOneBit(batch, elements, encodings, lengths, stream)
             : EncodeOneBitWithResidual(batch, elements, residual, encodings, lengths, stream);
}

TEST_F(OneBitCuda, HasTheBytesOfTheCpu) {
  ExpectEncodesAsTheCpu(OneBitCodec(), Encode, AdversarialSegments(), stream());
  ExpectEncodesAsTheCpu(OneBitCodec(), Encode, {TestGradient(70000, 6)}, stream());
}

// Sums of magnitudes near the largest number, which may or may not round beyond it.
TEST_F(OneBitCuda, AgreesWithTheCpuWhereAMeanIsTooLarge) {
  constexpr float kMax = std::numeric_limits<float>::max();
  Segments segments;
  for (const size_t n : {64, 192, 320, 448, 511, 512}) {
    for (int below = 0; below < 3; ++below) {
      segments.emplace_back(n, kMax);
      for (int i = 0; i < below; ++i) segments.back()[i] = std::nextafter(kMax, 0.0f);
    }
  }
  ExpectEncodesAsTheCpu(OneBitCodec(), Encode, segments, stream());
}

TEST_F(OneBitCuda, KeepsTheResidualOfTheCpu) {
  ExpectKeepsTheResidualOfTheCpu(OneBitCodec(), Encode, AdversarialSegments(), stream());
}

TEST_F(OneBitCuda, DecodesAsTheCpu) {
  Encodings encodings;
  std::vector<size_t> sizes;
  const auto add = [&](std::vector<std::byte> encoding, size_t n) {
    encodings.push_back(std::move(encoding));
    sizes.push_back(n);
  };
  for (const int64_t n : kDenseTestSizes) {
    const auto encoding = Encoding(OneBitCodec(), TestGradient(n, 7));
    add(encoding, static_cast<size_t>(n));
    auto shorter = encoding;
    shorter.pop_back();
    add(shorter, static_cast<size_t>(n));
    add({}, static_cast<size_t>(n));
  }
  const auto good = Encoding(OneBitCodec(), TestGradient(1025, 7));
  for (const float scale : {0.0f, -0.0f, -1.0f, 1e-45f, std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::infinity(), std::nanf("")}) {
    auto bytes = good;
    std::memcpy(bytes.data() + 68, &scale, sizeof(scale));
    add(bytes, 1025);
  }
  ExpectDecodesAsTheCpu(OneBitCodec(), DecodeOneBit, encodings, sizes, stream());
}

}  // namespace
}  // namespace tug::cuda
