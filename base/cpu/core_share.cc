// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/core_share.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace tug {

CpuBudget ShareOf(const CpuBudget& host, const CoreShare& share) {
  TUG_CHECK_LT(share.process, share.processes);
  if (share.processes == 1) return host;
  CpuBudget part;
  part.usable = std::max(1, host.usable / share.processes);
  const int cores = static_cast<int>(host.cores.size());
  if (host.usable != cores || cores < share.processes) return part;
  const auto first = host.cores.begin() + static_cast<ptrdiff_t>(share.process) * part.usable;
  part.cores = {first, first + part.usable};
  return part;
}

}  // namespace tug
