// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEDIAN_H_
#define TUG_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace tug {

// Median; of an even count, the mean of the two middle values; NaN if `values` is empty. Pure.
inline double Median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace tug

#endif  // TUG_BASE_MEDIAN_H_
