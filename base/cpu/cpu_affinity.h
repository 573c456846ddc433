// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_CPU_CPU_AFFINITY_H_
#define TUG_BASE_CPU_CPU_AFFINITY_H_

// Reads the CPU resources that base/cpu/cpu_budget.h needs and pins threads to cores. Linux.

#include <span>
#include <string>
#include <vector>

#include "base/cpu/cpu_budget.h"

namespace tug {

// Returns the cores of the calling thread's affinity mask with their NUMA nodes, and the CPU quota
// of its control groups (cpu.max, or cpu.cfs_quota_us of version 1; whole cores, rounded down).
// `root` is prepended to /proc and /sys, for tests. Unreadable values default to one node and no
// quota.
CpuBudget ReadCpuBudget(const std::string& root = "");

// Pins the calling thread, and threads it starts later, to `cores`; no effect if `cores` is empty.
// False: the kernel refused and the affinity is unchanged. Makes only system calls, so it is safe
// between fork and exec.
bool StayOn(std::span<const int> cores);

// Pins the calling thread to `cores` during its lifetime, then restores the previous affinity.
// Threads started meanwhile stay pinned; this places the threads of libraries (ZeroMQ). Not
// thread-safe.
class StartThreadsOn {
 public:
  explicit StartThreadsOn(std::span<const int> cores);
  ~StartThreadsOn();
  StartThreadsOn(const StartThreadsOn&) = delete;
  StartThreadsOn& operator=(const StartThreadsOn&) = delete;

 private:
  std::vector<int> before_;  // previous affinity; empty: unchanged
};

// Parses "0-3,8" into {0, 1, 2, 3, 8}; stops at the first malformed part.
std::vector<int> ParseCoreList(const std::string& text);

}  // namespace tug

#endif  // TUG_BASE_CPU_CPU_AFFINITY_H_
