// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/fp32.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "compression/dense/unaligned.h"
#include "kernels/sum.h"

namespace tug {

size_t EncodeFp32(std::span<const float> elements, std::span<float> residual,
                  std::span<std::byte> encoding) {
  std::memcpy(encoding.data(), elements.data(), elements.size_bytes());
  if (residual.empty()) return elements.size_bytes();
  TUG_CHECK_EQ(elements.size(), residual.size());
  auto* const sum = reinterpret_cast<float*>(encoding.data());
  const auto n = static_cast<int64_t>(elements.size());
  kernels::AddAndCheck(residual.data(), sum, n);
  if (!kernels::AllFinite(sum, n)) {
    std::memcpy(encoding.data(), elements.data(), elements.size_bytes());
  }
  std::fill(residual.begin(), residual.end(), 0.0f);
  return elements.size_bytes();
}

bool DecodeFp32(std::span<const std::byte> encoding, DecodeTo to, std::span<float> elements) {
  const auto* const from = reinterpret_cast<const float*>(encoding.data());
  const auto n = static_cast<int64_t>(elements.size());
  if (to == DecodeTo::kStore) return kernels::CopyAndCheck(from, elements.data(), n);
  if (to == DecodeTo::kAdd) return kernels::AddAndCheck(from, elements.data(), n);
  bool finite = true;
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto element = LoadOnce<float>(encoding.data() + i * sizeof(float));
    finite = finite && std::isfinite(element);
    elements[i] -= element;
  }
  return finite;
}

}  // namespace tug
