#ifndef TUG_BASE_LEAVE_SIGNAL_H_
#define TUG_BASE_LEAVE_SIGNAL_H_

namespace tug {

// SIGTERM as a request to a daemon to leave its job in order: from Arm on, the first one is noted,
// and one that comes StopWishes::kApart later ends the process at once, as any does that comes
// before Arm. Where whoever started
// us has us ignore SIGTERM, it stays ignored. One per process. Arm is for one thread, as asked()
// is.
class LeaveSignal {
 public:
  LeaveSignal() = default;
  ~LeaveSignal();
  LeaveSignal(const LeaveSignal&) = delete;
  LeaveSignal& operator=(const LeaveSignal&) = delete;

  void Arm();
  bool asked() const;

 private:
  bool armed_ = false;
};

}  // namespace tug

#endif  // TUG_BASE_LEAVE_SIGNAL_H_
