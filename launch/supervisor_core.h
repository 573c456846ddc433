// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_SUPERVISOR_CORE_H_
#define TUG_LAUNCH_SUPERVISOR_CORE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/stop_wishes.h"
#include "proto/process_name.h"

namespace tug {

inline constexpr int kMaxQuickDeaths = 3;

struct SupervisorOptions {
  // For the coordinator to end a job one of whose nodes has exited with an error.
  absl::Duration report_time = absl::Seconds(4);
  // A process that ends within this time of its start may end again for the same reason.
  absl::Duration quick_death = absl::Seconds(5);
  // How long a node tries to join before it exits with an error, on top of quick_death.
  absl::Duration join_time;
  // For nodes to exit after the coordinator has.
  absl::Duration exit_time = absl::Seconds(5);
  // For the coordinator to end the job by itself, where it is unreachable, or where a node crashes
  // in a loop: the job may be done. Longer than Coordinator::told_grace() and kEndTime of `tug
  // attend` by default.
  absl::Duration end_time = absl::Seconds(7);
};

enum class ProcessExit : uint8_t {
  kZero,            // exit code 0
  kError,           // another exit code
  kKilled,          // by a signal
  kConnectionLost,  // a remote process, which may still run
  kUnknown,         // the exit status is lost
};

// Starts a process.
struct StartProcess {
  std::string name;
  bool spare = false;  // a server that gets a slot only if one is free
  bool again = false;  // its predecessor has ended; a coordinator recovers the job
};
// Asks the running coordinator to end the job in order.
struct StopCoordinator {};
// Warns that the node exited with an error after the job was done.
struct WarnOfExit {
  std::string name;
};
// Kills the remaining processes. The last action.
struct EndJob {
  enum class Why : uint8_t {
    kDone,               // the coordinator exited with 0
    kCoordinatorFailed,  // it exited with an error and has reported the cause
    kProcessLost,        // `process` ended and is not started again
    kNoAddress,          // the coordinator runs without having reported its address
    kCancelled,          // interrupted before the coordinator was ready
    kInterruptedTwice,
  };
  Why why = Why::kDone;
  std::string process = {};
};
using SupervisorAction = std::variant<StartProcess, StopCoordinator, WarnOfExit, EndJob>;

// Decides which processes of a job to start, when to start one again, and when the job is over.
// Pure: the caller reports events and carries out TakeActions() in order. Rules:
//
//  1. The coordinator starts first; the nodes start once it is ready.
//  2. A node that was killed or whose connection is lost is started again at once, a server as a
//     spare since its slot may be taken. A node that exited with 0 has left and is not. One that
//     exited with an error is started again after report_time, unless the coordinator ends the job
//     in that time.
//  3. A coordinator that was killed is started again to recover the job; nodes that end meanwhile
//     wait until it is ready. One whose connection is lost may live and ends the job itself.
//  4. A process that ends kMaxQuickDeaths times in a row within quick_death of its start (nodes
//     that exit with an error: and join_time) ends the job; so does a coordinator that is killed
//     before it was ever ready or exits with an error. A node does so after end_time: the
//     coordinator may be about to end a job that is done.
//  5. The first interrupt stops the coordinator in order, as soon as it is ready; so does every
//     coordinator that recovers the job later. The second ends the job.
//
// Times come from one clock that never goes back. Not thread-safe.
class SupervisorCore {
 public:
  explicit SupervisorCore(const SupervisorOptions& options) : options_(options) {}

  // Adds a node, which starts with the job, or at once if the coordinator is ready.
  void AddNode(const std::string& name, bool is_server, bool spare, absl::Time now);
  void Begin(absl::Time now);
  // The coordinator serves its nodes.
  void OnReady(absl::Time now);
  // The coordinator closed its report without being ready: it is about to exit.
  void OnNotReady(absl::Time now);
  void OnExit(const std::string& name, ProcessExit how, absl::Time now);
  // A signal to stop; several may be one interrupt (StopWishes).
  void OnInterrupt(absl::Time now);
  void OnTick(absl::Time now);

  // When to call OnTick; InfiniteFuture while the coordinator's report is awaited.
  absl::Time NextDeadline() const;
  std::vector<SupervisorAction> TakeActions();
  bool interrupted() const { return interrupts_.count() > 0; }

 private:
  struct Process {
    std::string name;
    bool is_server = false;
    bool spare = false;
    bool running = false;
    absl::Time started_at = absl::InfinitePast();
    absl::Time start_at = absl::InfiniteFuture();  // next time; or once the coordinator is ready
    int quick_deaths = 0;                          // in a row
  };
  // kClosing: the job ends with `end_` once all nodes have exited, or at end_at_.
  enum class Phase : uint8_t { kBeginning, kRunning, kRecovering, kClosing, kOver };

  void Start(Process& process, absl::Time now);
  void StartDueNodes(absl::Time now);
  void CountExit(Process& process, ProcessExit how, absl::Time now) const;
  void OnCoordinatorExit(ProcessExit how, absl::Time now);
  void EndAt(absl::Time at, EndJob end);
  void End(EndJob end);
  void EndIfNodesExited();

  const SupervisorOptions options_;
  Phase phase_ = Phase::kBeginning;
  Process coordinator_{.name = kCoordinatorProcess};
  std::vector<Process> nodes_;  // in the order they were added
  EndJob end_;
  absl::Time end_at_ = absl::InfiniteFuture();
  StopWishes interrupts_;
  std::vector<SupervisorAction> actions_;
};

}  // namespace tug

#endif  // TUG_LAUNCH_SUPERVISOR_CORE_H_
