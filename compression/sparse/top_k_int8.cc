// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/top_k_int8.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compression/dense/unaligned.h"
#include "compression/residual.h"
#include "compression/sparse/select_top.h"
#include "compression/sparse/sorted_indices.h"
#include "compression/sparse/sparse.h"

namespace tug {
namespace {

constexpr size_t kGroup = 256;
constexpr float kLevels = 127.0f;

size_t Groups(size_t count) { return (count + kGroup - 1) / kGroup; }

// Above 0, with finite products.
float ScaleOf(float largest) {
  float scale = std::max(largest / kLevels, std::numeric_limits<float>::denorm_min());
  if (!std::isfinite(scale * kLevels)) scale = std::nextafter(scale, 0.0f);
  return scale;
}

// The nearest whole number, ties to even.
int8_t Quantised(float x, float scale) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: added, it leaves no bit below 1
  const float level = std::clamp(x / scale, -kLevels, kLevels);
  return static_cast<int8_t>((level + kRound) - kRound);
}

// Calls `after`(index, decoded) for each written element.
template <typename After>
size_t Write(std::span<const float> elements, std::span<const uint32_t> indices, std::byte* out,
             After after) {
  const auto count = static_cast<uint32_t>(indices.size());
  std::memcpy(out, &count, sizeof(count));
  PackSortedIndices(indices, elements.size(), out + kCountBytes);
  std::byte* const scales = out + kCountBytes + SortedIndicesBytes(elements.size(), count);
  std::byte* const levels = scales + Groups(count) * sizeof(float);
  for (size_t begin = 0; begin < count; begin += kGroup) {
    const size_t end = std::min<size_t>(begin + kGroup, count);
    float largest = 0;
    for (size_t i = begin; i < end; ++i) {
      largest = std::max(largest, std::abs(elements[indices[i]]));
    }
    const float scale = ScaleOf(largest);
    std::memcpy(scales + begin / kGroup * sizeof(float), &scale, sizeof(scale));
    for (size_t i = begin; i < end; ++i) {
      const int8_t level = Quantised(elements[indices[i]], scale);
      levels[i] = static_cast<std::byte>(level);
      after(indices[i], static_cast<float>(level) * scale);
    }
  }
  return static_cast<size_t>(levels + count - out);
}

}  // namespace

size_t TopKInt8Codec::MaxEncodedBytes(size_t elements) const {
  const size_t count = KeptElements(density_, elements);
  return kCountBytes + MaxSortedIndicesBytes(elements, count) + Groups(count) * sizeof(float) +
         count;
}

size_t TopKInt8Codec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                             std::span<std::byte> out, CodecScratch& scratch) const {
  const auto top = SelectTop(elements, KeptElements(density_, elements.size()), scratch);
  if (!top.has_value()) return 0;
  return Write(elements, *top, out.data(), [](uint32_t, float) {});
}

size_t TopKInt8Codec::EncodeWithResidual(const CodecKey& /*key*/, std::span<const float> elements,
                                         std::span<float> residual, std::span<std::byte> out,
                                         CodecScratch& scratch) const {
  size_t bytes = 0;
  EncodeSum(elements, residual, [&] {
    const auto top =
        AddAndSelectTop(elements, residual, KeptElements(density_, elements.size()), scratch);
    if (!top.has_value()) return false;
    bytes = Write(residual, *top, out.data(),
                  [&](uint32_t index, float decoded) { residual[index] -= decoded; });
    return true;
  });
  return bytes;
}

bool TopKInt8Codec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                           std::span<float> elements) const {
  if (encoded.size() < kCountBytes) return false;
  const auto count = LoadOnce<uint32_t>(encoded.data());
  if (count > elements.size()) return false;
  const size_t scales_at = kCountBytes + SortedIndicesBytes(elements.size(), count);
  const size_t levels_at = scales_at + Groups(count) * sizeof(float);
  if (encoded.size() != levels_at + count) return false;
  SortedIndexReader indices(encoded.data() + kCountBytes, elements.size(), count);
  SparseTarget target(to, elements);
  float scale = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i % kGroup == 0) {
      scale = LoadOnce<float>(encoded.data() + scales_at + i / kGroup * sizeof(float));
    }
    const auto index = indices.Next();
    if (!index.has_value()) return false;
    const auto level = LoadOnce<int8_t>(encoded.data() + levels_at + i);
    if (!target.Put(*index, static_cast<float>(level) * scale)) return false;
  }
  return indices.AtEnd();
}

}  // namespace tug
