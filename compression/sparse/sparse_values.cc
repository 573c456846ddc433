// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/sparse_values.h"

#include <cstring>

#include "compression/dense/unaligned.h"
#include "compression/sparse/sorted_indices.h"
#include "compression/sparse/sparse.h"

namespace tug {

size_t MaxSparseValuesBytes(size_t elements, size_t count) {
  return kCountBytes + MaxSortedIndicesBytes(elements, count) + count * sizeof(float);
}

size_t WriteSparseValues(std::span<const float> elements, std::span<const uint32_t> indices,
                         std::byte* out) {
  const auto count = static_cast<uint32_t>(indices.size());
  std::memcpy(out, &count, sizeof(count));
  PackSortedIndices(indices, elements.size(), out + kCountBytes);
  const size_t values_at = kCountBytes + SortedIndicesBytes(elements.size(), count);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(out + values_at + i * sizeof(float), &elements[indices[i]], sizeof(float));
  }
  return values_at + count * sizeof(float);
}

bool DecodeSparseValues(std::span<const std::byte> encoded, DecodeTo to,
                        std::span<float> elements) {
  if (encoded.size() < kCountBytes) return false;
  const auto count = LoadOnce<uint32_t>(encoded.data());
  if (count > elements.size()) return false;
  const size_t values_at = kCountBytes + SortedIndicesBytes(elements.size(), count);
  if (encoded.size() != values_at + count * sizeof(float)) return false;
  SortedIndexReader indices(encoded.data() + kCountBytes, elements.size(), count);
  SparseTarget target(to, elements);
  for (size_t i = 0; i < count; ++i) {
    const auto index = indices.Next();
    if (!index.has_value()) return false;
    const auto value = LoadOnce<float>(encoded.data() + values_at + i * sizeof(float));
    if (!target.Put(*index, value)) return false;
  }
  return indices.AtEnd();
}

}  // namespace tug
