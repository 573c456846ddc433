// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/top_k.h"

#include "compression/residual.h"
#include "compression/sparse/select_top.h"
#include "compression/sparse/sparse.h"
#include "compression/sparse/sparse_values.h"

namespace tug {

size_t TopKCodec::MaxEncodedBytes(size_t elements) const {
  return MaxSparseValuesBytes(elements, KeptElements(density_, elements));
}

size_t TopKCodec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                         std::span<std::byte> out, CodecScratch& scratch) const {
  const auto top = SelectTop(elements, KeptElements(density_, elements.size()), scratch);
  return top.has_value() ? WriteSparseValues(elements, *top, out.data()) : 0;
}

size_t TopKCodec::EncodeWithResidual(const CodecKey& /*key*/, std::span<const float> elements,
                                     std::span<float> residual, std::span<std::byte> out,
                                     CodecScratch& scratch) const {
  size_t bytes = 0;
  EncodeSum(elements, residual, [&] {
    const auto top =
        AddAndSelectTop(elements, residual, KeptElements(density_, elements.size()), scratch);
    if (!top.has_value()) return false;
    bytes = WriteSparseValues(residual, *top, out.data());
    for (const uint32_t index : *top) residual[index] = 0.0f;
    return true;
  });
  return bytes;
}

bool TopKCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                       std::span<float> elements) const {
  return DecodeSparseValues(encoded, to, elements);
}

}  // namespace tug
