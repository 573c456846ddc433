// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_CPU_CPU_BUDGET_H_
#define TUG_BASE_CPU_CPU_BUDGET_H_

// Number of threads of a job on a host, and their cores. Pure: CPU resources in, thread counts and
// core lists out (base/cpu/cpu_affinity.h reads the former and applies the latter). Results of a
// job never depend on them. Thread-safe.
//
// Busy threads are those that can saturate a core: a compute thread (throughout forward and
// backward), a lane (while gradients arrive), the exchange thread of a worker (while weights
// arrive). A ZeroMQ I/O thread shares the core of the lane or exchange thread it serves: over
// shared memory it is idle. The kernel schedules heartbeats, gRPC and checkpoint writers.
//
// Defaults. One core is reserved for every lane and every exchange thread; the workers divide the
// rest. If that leaves less than three quarters of the cores to compute threads, cores are reserved
// for lanes only; if that is still too few, none are reserved: under BSP a lane is busiest while
// compute threads wait for it, and cores idle for a lane cost more than time-sharing.
//
// Pinning b busy threads on n cores, if the process has all of them without a quota:
//   b > n        nothing is pinned: two busy threads on one core next to an idle core cost more
//                than migration by the kernel
//   2 b <= n     no thread gets a core of its own: cores are plentiful, and another job would pin
//                to the same ones; lanes are spread over the NUMA nodes and stay on theirs
//   otherwise    every busy thread has a core of its own
// Under a CPU quota below the number of cores nothing is pinned: the kernel decides which cores are
// free. Two hardware threads of one core count as two cores.

#include <string>
#include <vector>

namespace tug {

// Kernel core numbers, ordered by NUMA node. Empty: any core.
using CoreList = std::vector<int>;

struct Core {
  int number = 0;
  int node = 0;  // NUMA
};

// CPU resources of a process.
struct CpuBudget {
  std::vector<Core> cores;  // sorted by (node, number); empty if unknown
  int usable = 1;  // CPU time in cores, at least 1; below the number of cores under a quota
};

// Processes and threads of a job on one host.
struct HostLoad {
  int servers = 0;
  int lanes_per_server = 1;
  int workers = 0;
  int compute_threads = 1;  // per worker

  int lanes() const { return servers * lanes_per_server; }
  int busy_threads() const { return lanes() + workers * (compute_threads + 1); }
};

// One lane for every 8 cores, divided among the servers, 1 to 8 each. A lane sums about 10 GB/s and
// a 100 Gbit/s link delivers 12.5 GB/s, so two lanes keep up with a link, and 8 saturate the memory
// bandwidth of a socket. Lanes thus use at most an eighth of a machine that also computes.
int DefaultLanesPerServer(int cores, int servers);

// Lanes per server on a host whose workers compute on GPUs, with kGpuComputeThreads each: the
// remaining cores, divided among the servers, 1 to 8 each. Steps of such a job wait for updates,
// which take one nanosecond per element and lane.
int DefaultLanesBesideGpus(int cores, int servers, int workers);

// Compute threads of a worker whose model is on a GPU: the host only clips gradients and runs
// encodings that the GPU does not.
inline constexpr int kGpuComputeThreads = 2;

// Compute threads per worker, as described above; at least 1. Ignores `load.compute_threads`.
int DefaultComputeThreads(int cores, const HostLoad& load);

// Division of a host among the processes of a job.
struct HostPlan {
  bool may_pin = false;           // false: no process may pin its threads
  std::vector<CoreList> servers;  // by process: cores in proportion to its busy threads
  std::vector<CoreList> workers;
};

// A process gets cores of a single NUMA node if one has enough. Lists are empty if every process
// may use all cores.
HostPlan DivideHost(const CpuBudget& host, const HostLoad& load);

// Cores of one of a server's lanes.
struct LaneCores {
  CoreList lane;
  CoreList io;  // threads of its transport: a spare core, otherwise the lane's
};
std::vector<LaneCores> PlanServer(const CpuBudget& own, int lanes);

// Cores of a worker's threads.
struct WorkerCores {
  std::vector<CoreList> compute;  // by compute thread
  CoreList exchange;
  CoreList io;  // threads of its transport: a spare core, otherwise the exchange thread's
};
WorkerCores PlanWorker(const CpuBudget& own, int compute_threads);

// "8 cores: 1 lane per server, 6 compute threads per worker, pinned (8 busy threads)"
std::string PlanText(const CpuBudget& host, const HostLoad& load, bool pin_threads);

}  // namespace tug

#endif  // TUG_BASE_CPU_CPU_BUDGET_H_
