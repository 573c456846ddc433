// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_INTERRUPTS_H_
#define TUG_PROCESS_INTERRUPTS_H_

#include <signal.h>

#include "base/stop_wishes.h"
#include "base/time_source.h"

namespace tug {

// Whether this process was started with the signal ignored, as nohup does with SIGHUP.
bool IsIgnored(int signal);

// Counts SIGINT, SIGTERM and SIGHUP (StopWishes), which no longer end the process; an ignored
// SIGTERM or SIGHUP stays ignored. Create it before other threads, which inherit the mask. Not
// thread-safe.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Number of interrupts so far. Does not wait.
  int Count();

 private:
  sigset_t mask_before_;
  int fd_ = -1;
  const RealTime time_;
  StopWishes wishes_;
};

}  // namespace tug

#endif  // TUG_PROCESS_INTERRUPTS_H_
