// SPDX-License-Identifier: Apache-2.0
// Replaces the wall clock of a process that loads this library first (LD_PRELOAD). Other clocks are
// unchanged.
//   TUG_TEST_CLOCK_BACK=FILE   is set back by an hour when the file exists
//   TUG_TEST_CLOCK_AHEAD=1     is an hour ahead of the kernel's: a process that passes an absolute
//                              wall clock time to the kernel waits as after a step back

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

int64_t ShiftSeconds() {
  const int error = errno;
  const char* const back = getenv("TUG_TEST_CLOCK_BACK");
  int64_t shift = getenv("TUG_TEST_CLOCK_AHEAD") != nullptr ? 3600 : 0;
  if (back != nullptr && access(back, F_OK) == 0) shift -= 3600;
  errno = error;
  return shift;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (syscall(SYS_clock_gettime, clock, now) != 0) return -1;
  if (clock == CLOCK_REALTIME) now->tv_sec += ShiftSeconds();
  return 0;
}

// Abseil's timeouts start from this clock.
extern "C" int gettimeofday(timeval* now, void*) noexcept {
  timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  *now = {.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
  return 0;
}
