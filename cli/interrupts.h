#ifndef TUG_CLI_INTERRUPTS_H_
#define TUG_CLI_INTERRUPTS_H_

#include <signal.h>

#include "base/stop_wishes.h"
#include "base/time_source.h"

namespace tug {

// Whether whoever started us has us ignore a signal, as nohup does with SIGHUP.
bool IsIgnored(int signal);

// Counts SIGINT, SIGTERM and SIGHUP (StopWishes) instead of dying from them; a SIGTERM or SIGHUP
// that is ignored stays ignored. Made before other threads are started, which inherit the mask. Not
// thread-safe.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // How many wishes to stop have come so far. Does not wait.
  int Count();

 private:
  sigset_t mask_before_;
  int fd_ = -1;
  const RealTime time_;
  StopWishes wishes_;
};

}  // namespace tug

#endif  // TUG_CLI_INTERRUPTS_H_
