// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_FIELDS_H_
#define TUG_KERNELS_FIELDS_H_

#include <cstddef>

namespace tug::kernels {

struct AnyField {
  template <typename T>
  operator T() const;  // never called
};

// Number of fields of an aggregate that has no arrays and no references.
template <typename S, typename... Fields>
consteval size_t CountFields() {
  if constexpr (requires { S{Fields()..., AnyField()}; }) {
    return CountFields<S, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

// Calls f(fields...) with the fields of such an aggregate, at most 12: treats each argument of any
// operation alike.
template <typename S, typename F>
decltype(auto) WithFields(const S& s, const F& f) {
  constexpr size_t kFields = CountFields<S>();
#define TUG_WITH_FIELDS(count, ...) \
  if constexpr (kFields == count) { \
    const auto& [__VA_ARGS__] = s;  \
    return f(__VA_ARGS__);          \
  } else
  TUG_WITH_FIELDS(1, a)
  TUG_WITH_FIELDS(2, a, b)
  TUG_WITH_FIELDS(3, a, b, c)
  TUG_WITH_FIELDS(4, a, b, c, d)
  TUG_WITH_FIELDS(5, a, b, c, d, e)
  TUG_WITH_FIELDS(6, a, b, c, d, e, g)
  TUG_WITH_FIELDS(7, a, b, c, d, e, g, h)
  TUG_WITH_FIELDS(8, a, b, c, d, e, g, h, i)
  TUG_WITH_FIELDS(9, a, b, c, d, e, g, h, i, j)
  TUG_WITH_FIELDS(10, a, b, c, d, e, g, h, i, j, k)
  TUG_WITH_FIELDS(11, a, b, c, d, e, g, h, i, j, k, l)
  TUG_WITH_FIELDS(12, a, b, c, d, e, g, h, i, j, k, l, m)
  static_assert(kFields == 0, "more fields than WithFields knows");
#undef TUG_WITH_FIELDS
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_FIELDS_H_
