#ifndef TUG_BASE_LEAVE_SIGNAL_H_
#define TUG_BASE_LEAVE_SIGNAL_H_

namespace tug {

// SIGTERM as a request to a daemon to leave its job in order. From Arm on, the first SIGTERM is
// noted, and one that arrives StopWishes::kApart later or after that ends the process at once, as
// any SIGTERM before Arm does. If the parent process has SIGTERM ignored, it stays ignored. One per
// process. Arm and asked() are for one thread.
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
