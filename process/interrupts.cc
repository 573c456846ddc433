// SPDX-License-Identifier: Apache-2.0
#include "process/interrupts.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"

namespace tug {

bool IsIgnored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

Interrupts::Interrupts() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGINT);
  for (const int signal : {SIGTERM, SIGHUP}) {
    if (!IsIgnored(signal)) sigaddset(&watched, signal);
  }
  TUG_CHECK_EQ(pthread_sigmask(SIG_BLOCK, &watched, &mask_before_), 0);
  fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  TUG_CHECK_GE(fd_, 0);
}

Interrupts::~Interrupts() {
  Count();  // discard pending signals, which have been handled
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

int Interrupts::Count() {
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof(info)) == sizeof(info)) wishes_.Add(time_.Now());
  return wishes_.count();
}

}  // namespace tug
