// SPDX-License-Identifier: Apache-2.0
#include "collective/element_type.h"

#include "kernels/add.h"

namespace tug {
namespace {

template <typename T>
void AddAs(const std::byte* a, const std::byte* b, std::byte* sum, uint64_t count) {
  kernels::Add(reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b),
               reinterpret_cast<T*>(sum), static_cast<int64_t>(count));
}

}  // namespace

void AddElements(ElementType type, const std::byte* a, const std::byte* b, std::byte* sum,
                 uint64_t count) {
  switch (type) {
    case ElementType::kFp32:
      return AddAs<float>(a, b, sum, count);
    case ElementType::kBf16:
      return AddAs<kernels::Bf16>(a, b, sum, count);
    case ElementType::kFp16:
      return AddAs<kernels::Fp16>(a, b, sum, count);
  }
}

}  // namespace tug
