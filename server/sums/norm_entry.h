// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SUMS_NORM_ENTRY_H_
#define TUG_SERVER_SUMS_NORM_ENTRY_H_

#include <cstdint>

namespace tug {

// A lane's norm of one summed segment (norm_ledger.h). On the wire: 16 bytes, little-endian, in
// this order.
struct NormEntry {
  static constexpr uint32_t kAllFinite = 0xffffffffu;

  double sum_of_squares = 0;
  uint32_t bad_virtual_worker = kAllFinite;  // the first whose gradient is not finite
  uint32_t reserved = 0;

  friend bool operator==(const NormEntry&, const NormEntry&) = default;
};
static_assert(sizeof(NormEntry) == 16);

}  // namespace tug

#endif  // TUG_SERVER_SUMS_NORM_ENTRY_H_
