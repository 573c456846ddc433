// SPDX-License-Identifier: Apache-2.0
#include "process/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace tug {
namespace {

bool IsNullDevice(int descriptor) {
  struct stat is {};
  struct stat null_device {};
  return fstat(descriptor, &is) == 0 && stat("/dev/null", &null_device) == 0 &&
         S_ISCHR(is.st_mode) && is.st_rdev == null_device.st_rdev;
}

// Exit code of a child process started with some of descriptors 0 to 2 closed: those set as bits in
// `closed`.
int ExitCodeWithClosed(int closed) {
  const pid_t child = fork();
  if (child == 0) {
    for (int stream = 0; stream <= 2; ++stream) {
      if ((closed >> stream) & 1) close(stream);
    }
    signal(SIGCHLD, SIG_IGN);
    PrepareStandardStreams();
    for (int stream = 0; stream <= 2; ++stream) {
      if (fcntl(stream, F_GETFD) < 0) _exit(10 + stream);
      if (((closed >> stream) & 1) && !IsNullDevice(stream)) _exit(20 + stream);
    }
    if (signal(SIGTTOU, SIG_DFL) != SIG_IGN) _exit(30);
    if (signal(SIGXFSZ, SIG_DFL) != SIG_IGN) _exit(31);
    if (signal(SIGCHLD, SIG_DFL) != SIG_DFL) _exit(32);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, OpensClosedOnesOnTheNullDeviceAndSetsSignals) {
  for (int closed = 0; closed < 8; ++closed) {
    EXPECT_EQ(ExitCodeWithClosed(closed), 0) << "closed: " << closed;
  }
}

}  // namespace
}  // namespace tug
