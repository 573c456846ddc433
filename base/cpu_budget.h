#ifndef TUG_BASE_CPU_BUDGET_H_
#define TUG_BASE_CPU_BUDGET_H_

// How many threads a job runs on a host, and on which cores. Pure: what the machine has comes in,
// numbers and core lists come out (base/cpu_affinity.h reads and applies them). Results of a job
// never depend on any of it. Thread-safe.
//
// Busy threads are those that can keep a core to themselves: a compute thread (all through forward
// and backward), a lane (while gradients arrive), the exchange thread of a worker (while weights
// arrive). A ZeroMQ I/O thread goes with the lane or the exchange thread it serves: through shared
// memory it has nothing to do. Heartbeats, gRPC and writers of checkpoints are left to the kernel.
//
// Defaults. A core is set aside for every lane and every exchange thread, the workers share the
// rest. Where that would leave less than three quarters of the cores to compute threads, cores are
// set aside for lanes only; where that still would, for nobody: under BSP a lane is busiest while
// compute threads wait for it, and cores that wait for a lane cost more than taking turns.
//
// Pinning. On cores all of which are ours, with b busy threads on n cores:
//   b > n        nothing is pinned: two busy threads on one core while another has none would cost
//                more than the kernel's moving them about
//   2 b <= n     no thread gets a core of its own: there is room, and another job would meet ours
//                on the same cores; lanes are spread over the NUMA nodes and stay on theirs
//   otherwise    every busy thread has a core of its own
// Under a quota of CPU time below the number of cores nothing is pinned: which cores are free at a
// moment is not ours to say. Two hardware threads of one core count as two cores.

#include <string>
#include <vector>

namespace tug {

// Cores by the kernel's numbers, in order of NUMA node. Empty: wherever the kernel likes.
using CoreList = std::vector<int>;

struct Core {
  int number = 0;
  int node = 0;  // NUMA
};

// What a process may use.
struct CpuBudget {
  std::vector<Core> cores;  // sorted by (node, number); empty if not known
  int usable = 1;           // cores' worth of time, at least 1: less than cores under a quota
};

// What a job runs on one host.
struct HostLoad {
  int servers = 0;
  int lanes_per_server = 1;
  int workers = 0;
  int compute_threads = 1;  // per worker

  int lanes() const { return servers * lanes_per_server; }
  int busy_threads() const { return lanes() + workers * (compute_threads + 1); }
};

// One lane for every 8 cores, shared by the servers, 1 to 8 each. A lane sums about 10 GB/s, and a
// link of 100 Gbit/s brings 12.5 GB/s: two lanes keep up with it, and 8 take as much as the memory
// of a socket gives. So lanes never cost more than an eighth of a machine that computes as well.
int DefaultLanesPerServer(int cores, int servers);

// The same beside workers that compute on GPUs, with kGpuComputeThreads each: the cores that these
// leave, shared by the servers, 1 to 8 each. There an update is what a step waits for, one
// nanosecond an element and lane.
int DefaultLanesBesideGpus(int cores, int servers, int workers);

// Compute threads of a worker whose model is on a GPU: what is left to the host is clipping, and
// encoding what the GPU does not.
inline constexpr int kGpuComputeThreads = 2;

// Compute threads per worker, as described above; at least 1. `load.compute_threads` is not read.
int DefaultComputeThreads(int cores, const HostLoad& load);

// How the processes of a job share a host.
struct HostPlan {
  bool may_pin = false;           // false: no process shall pin anything
  std::vector<CoreList> servers;  // by process: its cores, in proportion to its busy threads
  std::vector<CoreList> workers;
};

// Each process gets cores of one NUMA node where one has enough of them. Lists are empty where all
// processes may run everywhere.
HostPlan DivideHost(const CpuBudget& host, const HostLoad& load);

// The cores of a server's lanes, by lane. `own`: of the server alone.
struct LaneCores {
  CoreList lane;
  CoreList io;  // its transport's threads: a spare core, otherwise the lane's
};
std::vector<LaneCores> PlanServer(const CpuBudget& own, int lanes);

// The cores of a worker's threads. `own`: of the worker alone.
struct WorkerCores {
  std::vector<CoreList> compute;  // by compute thread
  CoreList exchange;
  CoreList io;  // its transport's threads: a spare core, otherwise the exchange thread's
};
WorkerCores PlanWorker(const CpuBudget& own, int compute_threads);

// "8 cores: 1 lane a server, 6 compute threads a worker, pinned (8 busy threads)"
std::string PlanText(const CpuBudget& host, const HostLoad& load, bool pin_threads);

}  // namespace tug

#endif  // TUG_BASE_CPU_BUDGET_H_
