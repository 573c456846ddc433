// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_CPU_CORE_SHARE_H_
#define TUG_BASE_CPU_CORE_SHARE_H_

#include "base/cpu/cpu_budget.h"

namespace tug {

// Index of one process among all that share a host's cores.
struct CoreShare {
  int process = 0;
  int processes = 1;  // must exceed `process`
};

// Returns the process's share of `host`: consecutive cores, the same number for every process;
// leftover cores stay unused. With fewer cores than processes, or under a quota, only `usable` is
// divided and `cores` is empty, so nothing is pinned. Pure.
CpuBudget ShareOf(const CpuBudget& host, const CoreShare& share);

}  // namespace tug

#endif  // TUG_BASE_CPU_CORE_SHARE_H_
