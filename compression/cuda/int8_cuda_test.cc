// SPDX-License-Identifier: Apache-2.0
#include "compression/cuda/int8_cuda.h"

#include <cmath>

#include "compression/cuda/segments_cuda_test_support.h"
#include "compression/dense/int8.h"

namespace tug::cuda {
namespace {

using Int8Cuda = CudaTest;

absl::Status Encode(const SegmentBatch& batch, const float* elements, float* residual,
                    std::byte* encodings, uint32_t* lengths, const Stream& stream) {
  return residual == nullptr
             ? EncodeInt8(batch, elements, encodings, lengths, stream)
             : EncodeInt8WithResidual(batch, elements, residual, encodings, lengths, stream);
}

TEST_F(Int8Cuda, HasTheBytesOfTheCpu) {
  ExpectEncodesAsTheCpu(Int8Codec(), Encode, AdversarialSegments(), stream());
  ExpectEncodesAsTheCpu(Int8Codec(), Encode, {TestGradient(70000, 6)}, stream());
}

TEST_F(Int8Cuda, KeepsTheResidualOfTheCpu) {
  ExpectKeepsTheResidualOfTheCpu(Int8Codec(), Encode, AdversarialSegments(), stream());
}

TEST_F(Int8Cuda, DecodesAsTheCpu) {
  Segments segments;
  for (const int64_t n : {1, 2, 31, 255, 256, 257, 511, 512, 1000, 4096, 4099, 16411}) {
    segments.push_back(TestGradient(n, 7));
  }
  Encodings encodings;
  std::vector<size_t> sizes;
  const auto add = [&](std::vector<std::byte> encoding, size_t n) {
    encodings.push_back(std::move(encoding));
    sizes.push_back(n);
  };
  for (const auto& segment : segments) {
    const auto encoding = Encoding(Int8Codec(), segment);
    add(encoding, segment.size());
    auto shorter = encoding;
    shorter.pop_back();
    add(shorter, segment.size());
    add({}, segment.size());
  }
  // Any bytes; scales that an encoder writes, and others.
  const auto good = Encoding(Int8Codec(), segments[5]);
  for (const float scale : {1.0f, 0x1.020406p+121f, 0.0f, -1.0f, 1e-39f, 0x1.020408p+121f,
                            std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const size_t group : {0, 1}) {
      auto bytes = good;
      for (size_t i = 0; i < 257; ++i) bytes[8 + i] = std::byte(i & 0xFF);
      std::memcpy(bytes.data() + group * sizeof(float), &scale, sizeof(scale));
      add(bytes, 257);
    }
  }
  ExpectDecodesAsTheCpu(Int8Codec(), DecodeInt8, encodings, sizes, stream());
}

TEST_F(Int8Cuda, DecodesWeightsThatAreNotFiniteToNaNsInTheirGroupAlone) {
  auto weights = kernels::RandomFloats(700, 8);
  weights[300] = std::numeric_limits<float>::infinity();
  std::vector<std::byte> encoded(Int8Bytes(700));
  EncodeInt8Weights(weights, encoded);
  std::vector<float> expected(700);
  tug::DecodeInt8Weights(encoded, expected);
  const SegmentsOnDevice place(Int8Codec(), {700}, 0, stream());
  const OnDevice bytes(place.Join(Encodings{encoded}), stream());
  const OnDevice decoded(std::vector<float>(700), stream());
  const absl::Status status =
      DecodeInt8Weights(place.batch(), bytes.data(), decoded.data(), stream());
  ASSERT_TRUE(status.ok()) << status;
  const auto actual = decoded.Read();
  for (size_t i = 0; i < 700; ++i) {
    ASSERT_EQ(std::isnan(actual[i]), i / 256 == 1) << i;
    if (i / 256 != 1) {
      ASSERT_EQ(actual[i], expected[i]) << i;
    }
  }
}

}  // namespace
}  // namespace tug::cuda
