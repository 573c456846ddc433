// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CUDA_SEGMENTS_CUDA_TEST_SUPPORT_H_
#define TUG_COMPRESSION_CUDA_SEGMENTS_CUDA_TEST_SUPPORT_H_

// Common parts of the tests of codecs on the GPU: the same segments through a CPU codec and its GPU
// counterpart, which must agree to the bit.

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "compression/codec.h"
#include "compression/cuda/segments_cuda.h"
#include "compression/dense/dense_test_support.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::cuda {

using kernels::cuda::CudaTest;
using kernels::cuda::OnDevice;
using kernels::cuda::Stream;

using Segments = std::vector<std::vector<float>>;
using Encodings = std::vector<std::vector<std::byte>>;

// Calls of a GPU counterpart. `residual`: null without error feedback.
using EncodeOnDevice =
    std::function<absl::Status(const SegmentBatch&, const float* elements, float* residual,
                               std::byte* encodings, uint32_t* lengths, const Stream&)>;
using DecodeOnDevice = std::function<absl::Status(
    const SegmentBatch&, const std::byte* encodings, const uint32_t* lengths, DecodeTo,
    float* elements, uint32_t* malformed, const Stream&)>;

// Segments in device memory one after the other, `gap` elements apart: with a gap of 0 or 3 they
// begin at any boundary, like those of a model's tensors.
class SegmentsOnDevice {
 public:
  SegmentsOnDevice(const SegmentCodec& codec, const std::vector<size_t>& sizes, int64_t gap,
                   const Stream& stream)
      : sizes_(sizes), stream_(stream) {
    for (const size_t n : sizes) {
      places_.push_back(
          {static_cast<int64_t>(elements_), static_cast<int64_t>(n), static_cast<int64_t>(bytes_)});
      elements_ += n + static_cast<size_t>(gap);
      bytes_ += (codec.MaxEncodedBytes(n) + 7) / 8 * 8;
    }
    on_device_.emplace(places_, stream);
  }

  SegmentBatch batch() const {
    return {on_device_->data(), static_cast<int64_t>(sizes_.size()),
            static_cast<int64_t>(*std::max_element(sizes_.begin(), sizes_.end()))};
  }
  // Joins all segments, with `between` in the gaps.
  std::vector<float> Join(const Segments& segments, float between = 7.0f) const {
    std::vector<float> all(elements_, between);
    for (size_t i = 0; i < segments.size(); ++i) {
      std::copy(segments[i].begin(), segments[i].end(), all.begin() + places_[i].first);
    }
    return all;
  }
  // Inverse of Join; expects `between` in the gaps.
  Segments Split(const std::vector<float>& all, float between = 7.0f) const {
    Segments segments;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const auto at = all.begin() + places_[i].first;
      segments.emplace_back(at, at + places_[i].elements);
    }
    kernels::ExpectSameBits(Join(segments, between), all);
    return segments;
  }
  std::vector<std::byte> Join(const Encodings& encodings) const {
    std::vector<std::byte> all(bytes_, std::byte{0x5a});
    for (size_t i = 0; i < encodings.size(); ++i) {
      std::copy(encodings[i].begin(), encodings[i].end(), all.begin() + places_[i].encoding_at);
    }
    return all;
  }
  Encodings Split(const std::vector<std::byte>& all, const std::vector<uint32_t>& lengths) const {
    Encodings encodings;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto at = all.begin() + places_[i].encoding_at;
      EXPECT_LE(lengths[i], all.end() - at);
      encodings.emplace_back(at, at + lengths[i]);
    }
    return encodings;
  }

  Encodings Encode(const EncodeOnDevice& encode, const Segments& segments,
                   Segments* residuals) const {
    const OnDevice elements(Join(segments), stream_);
    const OnDevice residual(Join(residuals == nullptr ? segments : *residuals), stream_);
    const OnDevice encodings(Join(Encodings()), stream_);
    const OnDevice lengths(std::vector<uint32_t>(sizes_.size(), 77), stream_);
    const absl::Status status =
        encode(batch(), elements.data(), residuals == nullptr ? nullptr : residual.data(),
               encodings.data(), lengths.data(), stream_);
    EXPECT_TRUE(status.ok()) << status;
    if (residuals != nullptr) *residuals = Split(residual.Read());
    kernels::ExpectSameBits(elements.Read(), Join(segments));
    return Split(encodings.Read(), lengths.Read());
  }

  struct Decoded {
    Segments segments;
    std::vector<uint32_t> malformed;
  };
  Decoded Decode(const DecodeOnDevice& decode, const Encodings& encodings, DecodeTo to,
                 const Segments& before) const {
    std::vector<uint32_t> sizes;
    for (const auto& encoding : encodings) sizes.push_back(static_cast<uint32_t>(encoding.size()));
    const OnDevice elements(Join(before), stream_);
    const OnDevice bytes(Join(encodings), stream_);
    const OnDevice lengths(sizes, stream_), malformed(sizes, stream_);
    const absl::Status status = decode(batch(), bytes.data(), lengths.data(), to, elements.data(),
                                       malformed.data(), stream_);
    EXPECT_TRUE(status.ok()) << status;
    return {Split(elements.Read()), malformed.Read()};
  }

 private:
  const std::vector<size_t> sizes_;
  const Stream& stream_;
  std::vector<SegmentPlace> places_;
  size_t elements_ = 0;
  size_t bytes_ = 0;
  std::optional<OnDevice<SegmentPlace>> on_device_;
};

// Difficult values, and lengths where a group, a word of bits, a vector or a warp ends.
inline Segments AdversarialSegments() {
  using Limits = std::numeric_limits<float>;
  Segments segments;
  for (const int64_t n : kDenseTestSizes) segments.push_back(TestGradient(n, 1));
  for (const int64_t n : {255, 256, 257}) segments.push_back(TestGradient(n, 2));
  const float values[] = {0.0f, -0.0f, 1.0f, Limits::min(), Limits::max(), Limits::denorm_min()};
  for (const float value : values) {  // ties too
    for (const size_t n : {1, 64, 700, 1300}) {
      segments.emplace_back(n, value);
      segments.back().back() = -value;
    }
  }
  for (const float range : {1e-38f, 1e-44f, 1e30f}) {
    segments.push_back(kernels::RandomFloats(1023, 3, range));
  }
  const float not_finite[] = {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                              -Limits::quiet_NaN()};
  for (const float bad : not_finite) {
    for (const size_t at : {0, 511, 1024}) {
      segments.push_back(TestGradient(1025, 4));
      segments.back()[at] = bad;
    }
  }
  // Rounds up, down, and to even; a few large elements among many small ones; many equal ones.
  segments.push_back({127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 100.51f, -127});
  segments.push_back(TestGradient(2000, 5));
  for (size_t i = 0; i < 2000; i += 97) segments.back()[i] *= 1e6f;
  segments.emplace_back();
  for (int i = 0; i < 3000; ++i) segments.back().push_back(static_cast<float>(i % 7 - 3));
  return segments;
}

inline std::vector<size_t> SizesOf(const Segments& segments) {
  std::vector<size_t> sizes;
  for (const auto& segment : segments) sizes.push_back(segment.size());
  return sizes;
}

// Expects the GPU and the CPU to encode the same bytes.
inline void ExpectEncodesAsTheCpu(const SegmentCodec& codec, const EncodeOnDevice& encode,
                                  const Segments& segments, const Stream& stream) {
  for (const int64_t gap : {0, 3}) {
    const SegmentsOnDevice place(codec, SizesOf(segments), gap, stream);
    const Encodings encodings = place.Encode(encode, segments, nullptr);
    for (size_t i = 0; i < segments.size(); ++i) {
      ASSERT_EQ(encodings[i], Encoding(codec, segments[i]))
          << "segment " << i << " of " << segments[i].size() << ", gap " << gap;
    }
  }
}

// As above, with error feedback over several steps, in one of which sums overflow.
inline void ExpectKeepsTheResidualOfTheCpu(const SegmentCodec& codec, const EncodeOnDevice& encode,
                                           const Segments& first, const Stream& stream) {
  const SegmentsOnDevice place(codec, SizesOf(first), 3, stream);
  Segments residuals;
  for (const auto& segment : first) residuals.emplace_back(segment.size());
  auto expected = residuals;
  CodecScratch scratch;
  for (uint32_t step = 0; step < 4; ++step) {
    Segments segments = first;
    for (size_t i = 0; step > 0 && i < segments.size(); ++i) {
      segments[i] = TestGradient(static_cast<int64_t>(segments[i].size()), step + 10);
      if (step != 2 || i % 2 == 0) continue;
      constexpr float kMax = std::numeric_limits<float>::max();
      segments[i].back() = residuals[i].back() = expected[i].back() = kMax;
    }
    const Encodings encodings = place.Encode(encode, segments, &residuals);
    for (size_t i = 0; i < segments.size(); ++i) {
      SCOPED_TRACE(testing::Message()
                   << "segment " << i << " of " << segments[i].size() << ", step " << step);
      std::vector<std::byte> out(codec.MaxEncodedBytes(segments[i].size()));
      out.resize(codec.EncodeWithResidual(kTestKey, segments[i], expected[i], out, scratch));
      ASSERT_EQ(encodings[i], out);
      kernels::ExpectSameBits(residuals[i], expected[i]);
      ASSERT_FALSE(testing::Test::HasNonfatalFailure());
    }
  }
}

// Expects the GPU and the CPU to decode the same numbers, and to find the same encodings malformed.
inline void ExpectDecodesAsTheCpu(const SegmentCodec& codec, const DecodeOnDevice& decode,
                                  const Encodings& encodings, const std::vector<size_t>& sizes,
                                  const Stream& stream) {
  Segments before;
  for (const size_t n : sizes) {
    before.push_back(kernels::RandomFloats(static_cast<int64_t>(n), 99));
  }
  for (const DecodeTo to : {DecodeTo::kStore, DecodeTo::kAdd, DecodeTo::kSubtract}) {
    for (const int64_t gap : {0, 3}) {
      const SegmentsOnDevice place(codec, sizes, gap, stream);
      const auto decoded = place.Decode(decode, encodings, to, before);
      for (size_t i = 0; i < sizes.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "segment " << i << " of " << sizes[i] << ", to "
                                        << static_cast<int>(to) << ", gap " << gap);
        auto expected = before[i];
        // Some bytes after the encoding may be read.
        auto encoding = encodings[i];
        encoding.resize(encoding.size() + 8);
        const bool valid =
            codec.Decode(std::span(encoding).first(encodings[i].size()), to, expected);
        ASSERT_EQ(decoded.malformed[i], valid ? 0u : 1u);
        if (valid) kernels::ExpectSameBits(decoded.segments[i], expected);
        ASSERT_FALSE(testing::Test::HasNonfatalFailure());
      }
    }
  }
}

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_CUDA_SEGMENTS_CUDA_TEST_SUPPORT_H_
