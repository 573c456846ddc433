// SPDX-License-Identifier: Apache-2.0
#include "compression/cuda/top_k_cuda.h"

#include <random>

#include "compression/cuda/segments_cuda_test_support.h"
#include "compression/sparse/top_k.h"

namespace tug::cuda {
namespace {

TopKCodec Codec(double density) {
  PushCodecConfig config;
  config.mutable_top_k()->set_density(density);
  return TopKCodec(config);
}

EncodeOnDevice Encode(double density) {
  return [density](const SegmentBatch& batch, const float* elements, float* residual,
                   std::byte* encodings, uint32_t* lengths, const Stream& stream) {
    return residual == nullptr ? EncodeTopK(batch, density, elements, encodings, lengths, stream)
                               : EncodeTopKWithResidual(batch, density, elements, residual,
                                                        encodings, lengths, stream);
  };
}

// `count` elements of one magnitude among smaller ones: only at places in the sample of the
// threshold, or only at others. In the first case the sample finds too many large ones, in the
// second too few.
std::vector<float> Hidden(size_t n, size_t count, bool from_sample) {
  auto x = kernels::RandomFloats(static_cast<int64_t>(n), 5, 1e-3f);
  std::vector<bool> sampled(n);
  const auto stride = static_cast<uint32_t>(n / 4096);
  for (uint32_t i = 0; i < 4096; ++i) {
    sampled[i * stride + (uint64_t{i * 2654435761u} * stride >> 32)] = true;
  }
  for (size_t i = 0; i < n && count > 0; ++i) {
    if (sampled[i] == from_sample) continue;
    x[i] += 1.0f;
    --count;
  }
  return x;
}

// `count` large elements side by side, in one warp's part: as many as its candidates hold, or more.
std::vector<float> SideBySide(size_t n, size_t count) {
  auto x = kernels::RandomFloats(static_cast<int64_t>(n), 5, 1e-3f);
  for (size_t i = 0; i < count; ++i) x[i] += 1.0f;
  return x;
}

class TopKCuda : public CudaTest {
 protected:
  // Every third segment: emulating a block of 1,024 threads is slow, and group ends do not matter
  // here.
  Segments Adversarial() const {
    Segments segments;
    int i = 0;
    for (auto& segment : AdversarialSegments()) {
      if (i++ % 3 == 2) segments.push_back(std::move(segment));
    }
    return segments;
  }
  Segments Large() const {
    Segments segments = {TestGradient(40000, 6),          Hidden(40000, 300, false),
                         Hidden(40000, 300, true),        std::vector<float>(20000, 0.5f),
                         std::vector<float>(20000, 0.0f), SideBySide(40000, 256),
                         SideBySide(40000, 257)};
    segments.emplace_back();
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (int i = 0; i < 33333; ++i) segments.back().push_back(std::exp(15 * normal(random)));
    segments.emplace_back();
    for (int i = 0; i < 33333; ++i) {
      segments.back().push_back(static_cast<float>(static_cast<int>(normal(random))));
    }
    return segments;
  }
};

TEST_F(TopKCuda, HasTheBytesOfTheCpu) {
  for (const double density : {0.01, 1.0}) {
    SCOPED_TRACE(density);
    ExpectEncodesAsTheCpu(Codec(density), Encode(density), Adversarial(), stream());
  }
}

TEST_F(TopKCuda, HasTheBytesOfTheCpuWhereASampleGivesTheThreshold) {
  for (const double density : {0.001, 0.05}) {
    SCOPED_TRACE(density);
    ExpectEncodesAsTheCpu(Codec(density), Encode(density), Large(), stream());
  }
}

TEST_F(TopKCuda, KeepsTheResidualOfTheCpu) {
  Segments segments = Adversarial();
  for (auto& large : Large()) segments.push_back(std::move(large));
  ExpectKeepsTheResidualOfTheCpu(Codec(0.05), Encode(0.05), segments, stream());
}

TEST_F(TopKCuda, DecodesAsTheCpu) {
  Encodings encodings;
  std::vector<size_t> sizes;
  const auto add = [&](std::vector<std::byte> encoding, size_t n) {
    encodings.push_back(std::move(encoding));
    sizes.push_back(n);
  };
  std::mt19937 random(2);
  const auto all = Codec(1.0);  // its encodings have the most room
  for (const auto& segment : Adversarial()) {
    for (const double density : {0.01, 0.5}) {
      const auto encoding = Encoding(Codec(density), segment);
      add(encoding, segment.size());
      if (encoding.empty()) continue;
      auto shorter = encoding;
      shorter.pop_back();
      add(shorter, segment.size());
      // A flipped bit, mostly of indices, which then may not ascend, or be too many or too large.
      for (int i = 0; i < 2; ++i) {
        auto wrong = encoding;
        const size_t bit = random() % (wrong.size() * 8);
        wrong[bit / 8] ^= std::byte{1} << (bit % 8);
        add(wrong, segment.size());
      }
    }
  }
  // Two indices, each with 4 bits in byte 4: equal, descending, beyond the last element.
  std::vector<float> two(40);
  two[38] = two[39] = 1.0f;
  const auto encoding = Encoding(Codec(0.05), two);
  ASSERT_EQ(encoding[4], std::byte{0x76});
  for (const uint8_t low : {0x76, 0x66, 0x56, 0x67, 0x86, 0xf6, 0x75}) {
    add(encoding, two.size());
    encodings.back()[4] = std::byte{low};
  }
  ExpectDecodesAsTheCpu(all, DecodeTopK, encodings, sizes, stream());
}

}  // namespace
}  // namespace tug::cuda
