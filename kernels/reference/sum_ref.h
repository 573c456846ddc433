// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_SUM_REF_H_
#define TUG_KERNELS_REFERENCE_SUM_REF_H_

#include <vector>

namespace tug::kernels {

// TreeFold of kernels/sum.h by its definition: neighbours are paired level by level, an odd last
// one moves up.
inline double TreeFoldRef(std::vector<double> level) {
  if (level.empty()) return 0.0;
  while (level.size() > 1) {
    std::vector<double> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return level[0];
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_SUM_REF_H_
