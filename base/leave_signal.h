// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_LEAVE_SIGNAL_H_
#define TUG_BASE_LEAVE_SIGNAL_H_

namespace tug {

// SIGTERM and SIGHUP as a request to a daemon to leave its job in order. After Arm, the first such
// signal is recorded; another one, StopWishes::kApart later or more, ends the process at once, as
// any does before Arm. A signal that the process ignored when Arm was called stays ignored. One per
// process. Call Arm and asked() from one thread.
class LeaveSignal {
 public:
  enum class Rule {
    // For a job that continues without this process: the daemon reports asked() to the coordinator
    // and leaves.
    kLeave,
    // For a job that cannot continue without this process. `systemctl stop` and control groups
    // signal every process of a job, the coordinator among them, so this process waits
    // kPatienceSeconds for the job to end before SIGTERM ends it. asked() stays false.
    kAwaitEnd,
  };
  static constexpr unsigned kPatienceSeconds = 60;

  LeaveSignal() = default;
  ~LeaveSignal();
  LeaveSignal(const LeaveSignal&) = delete;
  LeaveSignal& operator=(const LeaveSignal&) = delete;

  void Arm(Rule rule);
  bool asked() const;

 private:
  bool leaves_ = false;
};

}  // namespace tug

#endif  // TUG_BASE_LEAVE_SIGNAL_H_
