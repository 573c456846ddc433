#ifndef TUG_BASE_LEAVE_SIGNAL_H_
#define TUG_BASE_LEAVE_SIGNAL_H_

namespace tug {

// SIGTERM and SIGHUP as a request to a daemon to leave its job in order. From Arm on, the first
// such signal is noted, and one that arrives StopWishes::kApart later or after that ends the
// process at once, as any does before Arm. A signal that the parent process has ignored stays
// ignored. One per process. Arm and asked() are for one thread.
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
