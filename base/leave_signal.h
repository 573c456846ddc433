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
    // The job goes on without this process: asked() is passed on, and the process leaves.
    kLeave,
    // The job cannot do without this process. Whoever stops a whole job signals the coordinator,
    // too (systemctl stop, a control group), so this process goes on until the job ends, for
    // kPatience at most; then the signal ends the process. asked() stays false.
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
