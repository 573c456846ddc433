#include "compression/top_k.h"

#include <cstring>

#include "compression/residual.h"
#include "compression/select_top.h"
#include "compression/sorted_indices.h"
#include "compression/sparse.h"
#include "compression/unaligned.h"

namespace tug {
namespace {

constexpr size_t kCountBytes = sizeof(uint32_t);

size_t Write(std::span<const float> elements, std::span<const uint32_t> indices, std::byte* out) {
  const auto count = static_cast<uint32_t>(indices.size());
  std::memcpy(out, &count, sizeof(count));
  PackSortedIndices(indices, elements.size(), out + kCountBytes);
  const size_t values_at = kCountBytes + SortedIndicesBytes(elements.size(), count);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(out + values_at + i * sizeof(float), &elements[indices[i]], sizeof(float));
  }
  return values_at + count * sizeof(float);
}

}  // namespace

size_t TopKCodec::MaxEncodedBytes(size_t elements) const {
  const size_t count = KeptElements(density_, elements);
  return kCountBytes + MaxSortedIndicesBytes(elements, count) + count * sizeof(float);
}

size_t TopKCodec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                         std::span<std::byte> out, CodecScratch& scratch) const {
  const auto top = SelectTop(elements, KeptElements(density_, elements.size()), scratch);
  return top.has_value() ? Write(elements, *top, out.data()) : 0;
}

size_t TopKCodec::EncodeWithResidual(const CodecKey& /*key*/, std::span<const float> elements,
                                     std::span<float> residual, std::span<std::byte> out,
                                     CodecScratch& scratch) const {
  size_t bytes = 0;
  EncodeSum(elements, residual, [&] {
    const auto top =
        AddAndSelectTop(elements, residual, KeptElements(density_, elements.size()), scratch);
    if (!top.has_value()) return false;
    bytes = Write(residual, *top, out.data());
    for (const uint32_t index : *top) residual[index] = 0.0f;
    return true;
  });
  return bytes;
}

bool TopKCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                       std::span<float> elements) const {
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
