#include "compression/bf16.h"

#include <algorithm>

#include "kernels/bf16.h"
#include "kernels/sum.h"

namespace tug {
namespace {

// Elements that stay in the nearest cache between two passes.
constexpr size_t kChunk = 2048;

}  // namespace

size_t Bf16Codec::MaxEncodedBytes(size_t elements) const { return 2 * elements; }

size_t Bf16Codec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                         std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  auto* const halves = reinterpret_cast<kernels::Bf16*>(out.data());
  float widened[kChunk];
  for (size_t i = 0; i < elements.size(); i += kChunk) {
    const auto n = static_cast<int64_t>(std::min(kChunk, elements.size() - i));
    kernels::Bf16FromFloat(elements.data() + i, halves + i, n);
    if (!kernels::CopyAndCheckBf16(halves + i, widened, n)) return 0;
  }
  return MaxEncodedBytes(elements.size());
}

bool Bf16Codec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                       std::span<float> elements) const {
  if (encoded.size() != MaxEncodedBytes(elements.size())) return false;
  const auto* const halves = reinterpret_cast<const kernels::Bf16*>(encoded.data());
  const auto all = static_cast<int64_t>(elements.size());
  if (to == DecodeTo::kStore) return kernels::CopyAndCheckBf16(halves, elements.data(), all);
  if (to == DecodeTo::kAdd) return kernels::AddAndCheckBf16(halves, elements.data(), all);
  float widened[kChunk];
  for (size_t i = 0; i < elements.size(); i += kChunk) {
    const size_t n = std::min(kChunk, elements.size() - i);
    if (!kernels::CopyAndCheckBf16(halves + i, widened, static_cast<int64_t>(n))) return false;
    for (size_t j = 0; j < n; ++j) elements[i + j] -= widened[j];
  }
  return true;
}

}  // namespace tug
