#include "compression/fp32.h"

#include "compression/unaligned.h"
#include "kernels/sum.h"

namespace tug {

bool DecodeFp32(std::span<const std::byte> encoding, DecodeTo to, std::span<float> elements) {
  const auto* const from = reinterpret_cast<const float*>(encoding.data());
  const auto n = static_cast<int64_t>(elements.size());
  if (to == DecodeTo::kStore) return kernels::CopyAndCheck(from, elements.data(), n);
  if (to == DecodeTo::kAdd) return kernels::AddAndCheck(from, elements.data(), n);
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] -= LoadOnce<float>(encoding.data() + i * sizeof(float));
  }
  return kernels::AllFinite(elements.data(), n);
}

}  // namespace tug
