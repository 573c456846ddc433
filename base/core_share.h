#ifndef TUG_BASE_CORE_SHARE_H_
#define TUG_BASE_CORE_SHARE_H_

#include "base/cpu_budget.h"

namespace tug {

// Which one of so many processes that share a host's cores it is.
struct CoreShare {
  int process = 0;
  int processes = 1;  // more than `process`
};

// Its part of `host`: cores that follow each other, all parts of one size; cores that are left over
// are nobody's. Where there are fewer cores than processes, or a quota, the part is of time only:
// which cores they are is not said, so nothing is pinned. Pure.
CpuBudget ShareOf(const CpuBudget& host, const CoreShare& share);

}  // namespace tug

#endif  // TUG_BASE_CORE_SHARE_H_
