#ifndef TUG_BASE_CPU_AFFINITY_H_
#define TUG_BASE_CPU_AFFINITY_H_

// What base/cpu_budget.h needs to know of the machine, and how threads are kept on cores. Linux.

#include <span>
#include <string>
#include <vector>

#include "base/cpu_budget.h"

namespace tug {

// The cores of the calling thread's affinity mask with their NUMA nodes, and the quota of its
// control groups (cpu.max, or cpu.cfs_quota_us of version 1; whole cores, rounded down). `root`
// stands before /proc and /sys, for tests. What cannot be read counts as: one node, no quota.
CpuBudget ReadCpuBudget(const std::string& root = "");

// Keeps the calling thread, and those it starts from now on, on `cores`; does nothing if there are
// none. False: the kernel refused, the thread runs where it ran. System calls only: safe between
// fork and exec.
bool StayOn(std::span<const int> cores);

// While it lives, the calling thread stays on `cores`, and the threads it starts stay there for
// good: this is how threads that a library starts (ZeroMQ's) get their place. Then the thread may
// run where it could before. Not for several threads.
class StartThreadsOn {
 public:
  explicit StartThreadsOn(std::span<const int> cores);
  ~StartThreadsOn();
  StartThreadsOn(const StartThreadsOn&) = delete;
  StartThreadsOn& operator=(const StartThreadsOn&) = delete;

 private:
  std::vector<int> before_;  // empty: nothing was changed
};

// "0-3,8" as {0, 1, 2, 3, 8}; what is not of that form ends the list.
std::vector<int> ParseCoreList(const std::string& text);

}  // namespace tug

#endif  // TUG_BASE_CPU_AFFINITY_H_
