// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_ELEMENT_TYPE_H_
#define TUG_COLLECTIVE_ELEMENT_TYPE_H_

#include <cstddef>
#include <cstdint>

namespace tug {

// Element type of a collective; the values are part of the wire format. Narrow types are added in
// FP32 and rounded to nearest even after each addition (kernels/add.h).
enum class ElementType : uint8_t { kFp32 = 0, kBf16 = 1, kFp16 = 2 };

inline constexpr size_t ElementBytes(ElementType type) {
  return type == ElementType::kFp32 ? 4 : 2;
}

// "FP32", "bf16", "FP16".
inline constexpr const char* ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kFp32:
      return "FP32";
    case ElementType::kBf16:
      return "bf16";
    case ElementType::kFp16:
      return "FP16";
  }
  return "";
}

// sum = a + b. a, b, sum: `count` elements; sum may be a, else no overlap. Thread-safe.
void AddElements(ElementType type, const std::byte* a, const std::byte* b, std::byte* sum,
                 uint64_t count);

}  // namespace tug

#endif  // TUG_COLLECTIVE_ELEMENT_TYPE_H_
