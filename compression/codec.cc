// SPDX-License-Identifier: Apache-2.0
#include "compression/codec.h"

#include <memory>

#include "compression/residual.h"
#include "kernels/sum.h"

namespace tug {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

std::span<std::byte> CodecScratch::Take(size_t size_bytes) {
  if (bytes_.size() < size_bytes + kAlignment) bytes_.resize(size_bytes + kAlignment);
  void* at = bytes_.data();
  size_t space = bytes_.size();
  at = std::align(kAlignment, size_bytes, at, space);
  return {static_cast<std::byte*>(at), size_bytes};
}

size_t SegmentCodec::EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                                        std::span<float> residual, std::span<std::byte> out,
                                        CodecScratch& scratch) const {
  size_t bytes = 0;
  const bool encoded = EncodeSum(elements, residual, [&] {
    kernels::AddAndCheck(elements.data(), residual.data(), static_cast<int64_t>(elements.size()));
    bytes = Encode(key, residual, out, scratch);
    return bytes > 0 && Decode(out.first(bytes), DecodeTo::kSubtract, residual);
  });
  return encoded ? bytes : 0;
}

}  // namespace tug
